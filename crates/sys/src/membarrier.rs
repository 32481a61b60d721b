//! A barrier in the threads of other processes (membarrier(2), since Linux 4.16). A process that
//! has registered takes part in it at no cost for itself: the kernel interrupts its running
//! threads. So two sides that store one word and then load another one need a fence on the rare
//! side alone.

use super::last_error;
use crate::error::Result;
use std::sync::OnceLock;

/// `MEMBARRIER_CMD_GLOBAL_EXPEDITED` of linux/membarrier.h.
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
/// `MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED`.
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn membarrier(command: libc::c_int) -> Result<()> {
    // SAFETY: the call has no pointers; a kernel that does not know it refuses it.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        0 => Ok(()),
        _ => Err(last_error("membarrier")),
    }
}

/// Whether this process takes part in the barriers of others, and may ask for barriers: the first
/// call registers it. Old kernels and filters of system calls refuse one or the other.
pub fn registered() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        membarrier(REGISTER_GLOBAL_EXPEDITED).and_then(|()| membarrier(GLOBAL_EXPEDITED)).is_ok()
    })
}

/// A full barrier in this thread and in each running thread of each registered process. It takes
/// microseconds.
pub fn barrier() -> Result<()> {
    membarrier(GLOBAL_EXPEDITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_registered_may_ask_for_barriers() {
        if registered() {
            assert!(registered());
            barrier().unwrap();
        }
    }
}
