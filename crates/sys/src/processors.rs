//! Sets of processors on which threads may run (sched_setaffinity(2)).

use std::io::Error;

use crate::error::Result;
use crate::last_error;
use crate::number::Number;

/// A set of processors.
#[derive(Clone, Copy)]
pub struct Processors(libc::cpu_set_t);

impl Processors {
    /// Returns the set without a processor.
    pub fn none() -> Processors {
        // SAFETY: plain data, whose zero bits stand for no processor.
        Processors(unsafe { core::mem::zeroed() })
    }

    /// Returns those on which the first thread of a process may run. Fails if there is no such
    /// process, or if the machine has more processors than a set.
    pub fn of_process(pid: i32) -> Result<Processors> {
        let mut set = Processors::none();
        // SAFETY: the set is a local variable of that length.
        let answer =
            unsafe { libc::sched_getaffinity(pid, size_of::<libc::cpu_set_t>(), &raw mut set.0) };
        if answer == 0 { Ok(set) } else { Err(last_error("sched_getaffinity")) }
    }

    /// Adds those of another set.
    pub fn add(&mut self, other: &Processors) {
        for processor in 0..libc::CPU_SETSIZE.cast_unsigned().to_usize() {
            // SAFETY: the number is below the length of a set.
            unsafe {
                if libc::CPU_ISSET(processor, &other.0) {
                    libc::CPU_SET(processor, &mut self.0);
                }
            }
        }
    }

    /// Lets a thread of this process run on these processors, as far as the cgroup of the process
    /// allows it. Changes nothing if there is none. The thread has not been joined.
    pub fn allow_to(&self, thread: libc::pthread_t) -> core::result::Result<(), Error> {
        let bytes = size_of::<libc::cpu_set_t>();
        // SAFETY: a thread that is not joined, and a set of that length.
        match unsafe { libc::pthread_setaffinity_np(thread, bytes, &raw const self.0) } {
            0 => Ok(()),
            errno => Err(Error::from_raw_os_error(errno)),
        }
    }
}
