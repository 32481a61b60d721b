//! `dlopen`: a library that the program loads may be the run-time library of a GPU, so the windows
//! that there are prepare for it. Then the call goes on to the dlopen of the C library, by a jump:
//! that one looks at its return address for the caller, whose search path it uses.

use crate::sync::{AtomicUsize, Ordering};
use crate::sys::dl;
use crate::window::library_loads;
use core::arch::naked_asm;
use core::ffi::{c_char, c_int};

/// Loads a library as dlopen of the C library does, with the same arguments, result and caller. Not
/// MPI; raises no error.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn dlopen() {
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {ahead}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "je 2f",
        "jmp rax",
        "2:",
        "ret",
        ahead = sym ahead,
    )
}

/// The same. `x17` is a register that code between a call and its function may change.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn dlopen() {
    naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "bl {ahead}",
        "mov x17, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbz x17, 2f",
        "br x17",
        "2:",
        "mov x0, xzr",
        "ret",
        ahead = sym ahead,
    )
}

/// Prepares for the library, if the call may load one. Returns the next dlopen.
extern "C" fn ahead(path: *const c_char, flags: c_int) -> usize {
    if !path.is_null() && flags & libc::RTLD_NOLOAD == 0 {
        library_loads::may_load();
    }
    next()
}

/// Returns the address of the next dlopen, or 0.
fn next() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: an address of code, the same for every thread that finds it.
    match NEXT.load(Ordering::Relaxed) {
        0 => {
            let next = dl::next_symbol(c"dlopen");
            NEXT.store(next, Ordering::Relaxed);
            next
        }
        next => next,
    }
}
