//! Signals that are kept off a thread.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;

/// The signals of faults.
pub const FAULTS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// While it lives, this thread blocks signals.
pub struct Blocked(libc::sigset_t);

impl Blocked {
    /// Blocks all signals but these.
    pub fn all_but(spared: &[c_int]) -> Blocked {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: places for two sets; both are written.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            spared.iter().for_each(|signal| {
                libc::sigdelset(all.as_mut_ptr(), *signal);
            });
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            Blocked(before.assume_init())
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set of before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}
