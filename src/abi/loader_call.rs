//! Hook of `dlopen`: a library that the program loads may be a GPU runtime, so existing windows
//! prepare for it. The hook then jumps to the C library's dlopen, which takes the caller, and thus
//! its search path, from the return address.

use crate::sync::{AtomicUsize, Ordering};
use crate::sys::dl;
use crate::window::library_loads;
use core::arch::naked_asm;
use core::ffi::{c_char, c_int};

/// Loads a library like the C library's dlopen, with the same arguments, result and caller. Not an
/// MPI function; raises no error.
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

/// The hook on AArch64. A function call may change `x17` (AAPCS64: an intra-procedure-call
/// register).
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

/// Prepares windows if the call may load a library. Returns the next dlopen in the link order.
extern "C" fn ahead(path: *const c_char, flags: c_int) -> usize {
    if !path.is_null() && flags & libc::RTLD_NOLOAD == 0 {
        library_loads::may_load();
    }
    next()
}

/// Returns the address of the next dlopen in the link order, or 0.
fn next() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: every thread finds the same code address.
    match NEXT.load(Ordering::Relaxed) {
        0 => {
            let next = dl::next_symbol(c"dlopen");
            NEXT.store(next, Ordering::Relaxed);
            next
        }
        next => next,
    }
}
