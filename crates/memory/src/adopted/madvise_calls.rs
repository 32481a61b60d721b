//! madvise(2) of the program and of its allocators, as long as pages are adopted: what they discard
//! reads as zero (`sys::adopt::discards`). Their calls come here from the first move on, and go on
//! to the function that they have called before. This library exports no `madvise`: UCX patches the
//! function that it finds by this name, and would neither notice the C library's own calls then nor
//! leave ours as it is.

#![allow(clippy::missing_safety_doc)] // called in place of a function of the C library

use crate::sync::{AtomicUsize, Ordering, full_fence};
use crate::sys::adopt::discards::{self, Advise};
use crate::sys::{dl, got_slots};

/// The madvise that libraries called before their calls were led here; 0: none is known.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Returns [`NEXT`].
fn next() -> usize {
    // Acquire pairs with the Release of `lead_here`.
    match NEXT.load(Ordering::Acquire) {
        0 => {
            // It was stored before the slot by which this call came. The processor may have read it
            // ahead of the slot, which the call read without any ordering.
            full_fence();
            NEXT.load(Ordering::Acquire)
        }
        next => next,
    }
}

/// The function that is called in place of madvise(2).
unsafe extern "C" fn advise(address: *mut libc::c_void, bytes: usize, advice: i32) -> i32 {
    let next = match next() {
        0 => discards::bare as Advise,
        // SAFETY: the function of this name has this type.
        next => unsafe { core::mem::transmute::<usize, Advise>(next) },
    };
    // SAFETY: the caller's duties are those of madvise.
    unsafe { discards::advise(next, address, bytes, advice) }
}

/// The state of loaded libraries (`dl::changes`) for which all calls lead here.
pub struct MadviseCalls(Option<u64>);

impl MadviseCalls {
    /// No call leads here.
    pub const ELSEWHERE: MadviseCalls = MadviseCalls(None);

    /// Leads the calls of all loaded libraries here. To be called before a page moves.
    pub fn lead_here(&mut self) {
        let changes = dl::changes();
        if changes.is_some() && changes == self.0 {
            return;
        }
        // SAFETY: `advise` has the type of madvise.
        unsafe {
            got_slots::redirect(c"madvise", (advise as *const ()).expose_provenance(), |next| {
                NEXT.store(next, Ordering::Release);
            });
        }
        self.0 = changes;
    }
}
