//! `pthread_create`: a thread that begins in a library of the MPI's launcher or network, or in this
//! library, is noted as a helper (`sys::adopt::helper_threads`). All other threads begin as they
//! would without this library.

use crate::sync::{AtomicUsize, Ordering};
use crate::sys::adopt::helper_threads::{self, Create, StartRoutine};
use crate::sys::dl;
use core::ffi::{c_int, c_void};

/// Makes a thread as pthread_create of the C library does, with the same arguments and result
/// (EAGAIN where there is none behind this library). Not MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: StartRoutine,
    argument: *mut c_void,
) -> c_int {
    let Some(next) = next() else { return libc::EAGAIN };
    if helper_threads::begins_helper(start) {
        // SAFETY: the caller's arguments.
        return unsafe { helper_threads::create(next, thread, attributes, start, argument) };
    }
    // SAFETY: the caller's arguments.
    unsafe { next(thread, attributes, start, argument) }
}

/// Returns the next pthread_create.
fn next() -> Option<Create> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: an address of code, the same for every thread that finds it.
    if NEXT.load(Ordering::Relaxed) == 0 {
        NEXT.store(dl::next_symbol(c"pthread_create"), Ordering::Relaxed);
    }
    match NEXT.load(Ordering::Relaxed) {
        0 => None,
        // SAFETY: the function of this name has this type.
        next => Some(unsafe { core::mem::transmute::<usize, Create>(next) }),
    }
}
