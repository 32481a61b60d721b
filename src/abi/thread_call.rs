//! Hook of `pthread_create`: a thread whose start routine belongs to a library of the MPI's
//! launcher or network, or to libfompi, is recorded as a helper (`sys::adopt::helper_threads`). All
//! other threads start as without libfompi.

use crate::sync::{AtomicUsize, Ordering};
use crate::sys::adopt::helper_threads::{self, Create, StartRoutine};
use crate::sys::dl;
use core::ffi::{c_int, c_void};

/// Creates a thread like the C library's pthread_create, with the same arguments and result (EAGAIN
/// if there is none behind libfompi). Not an MPI function.
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

/// Returns the next pthread_create in the link order.
fn next() -> Option<Create> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: every thread finds the same code address.
    if NEXT.load(Ordering::Relaxed) == 0 {
        NEXT.store(dl::next_symbol(c"pthread_create"), Ordering::Relaxed);
    }
    match NEXT.load(Ordering::Relaxed) {
        0 => None,
        // SAFETY: the function of this name has this type.
        next => Some(unsafe { core::mem::transmute::<usize, Create>(next) }),
    }
}
