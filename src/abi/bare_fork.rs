//! `_Fork` (POSIX 2024, glibc 2.34): fork(2) without the handlers that programs register. The child
//! gets its own copies of MPI_Alloc_mem memory and of adopted pages here, too. Not for `fork`,
//! which runs libfompi's handlers like those of the program.

use crate::memory::heap;
use crate::sys::dl;

/// Creates a child like the C library's `_Fork`. Returns its id, 0 in the child, or -1 and `errno`
/// (ENOSYS if the C library has no `_Fork`). Not an MPI function; raises no error.
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
