//! `_Fork` (POSIX 2024, glibc 2.34): fork(2) without the handlers that programs register. A child
//! gets its own copies of MPI_Alloc_mem's memory and of adopted pages then, too. Not for `fork`,
//! which does not come by here and runs our handlers as those of the program.

use crate::memory::heap;
use crate::sys::dl;

/// Makes a child as `_Fork` of the C library does. Returns its id, 0 in the child, or -1 and
/// `errno` (ENOSYS where the C library has no `_Fork`). Not MPI; raises no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Fork() -> libc::pid_t {
    let next = dl::next_symbol(c"_Fork");
    if next == 0 {
        // SAFETY: `errno` of this thread.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        return -1;
    }
    // SAFETY: the function of this name has this type.
    let fork = unsafe { core::mem::transmute::<usize, unsafe extern "C" fn() -> i32>(next) };
    // SAFETY: the caller's duties are those of `_Fork`.
    heap::around_fork(|| unsafe { fork() })
}
