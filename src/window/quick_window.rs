//! A window that quick calls serve, as `registry` finds it.

use super::quick_part::QuickPart;
use super::{Carrier, LocalWindow, Window};
use crate::epoch::known_ranks::KnownRanks;
use core::mem::offset_of;
use core::ops::Deref;

// A quick call reads one cache line of the window.
const _: () = assert!(align_of::<Window>() == 64);
const _: () = assert!(offset_of!(Window, epochs.known) + KnownRanks::WORDS_BYTES <= 64);

/// A window with a part for quick calls: all its ranks are on this node.
#[derive(Clone, Copy)]
pub struct QuickWindow {
    window: &'static Window,
}

impl QuickWindow {
    /// # Safety
    /// The window has a part for quick calls.
    #[inline(always)]
    pub(super) unsafe fn new(window: &'static Window) -> QuickWindow {
        debug_assert!(window.quick.is_some());
        QuickWindow { window }
    }

    /// Returns the part for quick calls.
    #[inline(always)]
    pub fn part(self) -> &'static QuickPart {
        // SAFETY: the promise of `new`.
        unsafe { self.window.quick.as_ref().unwrap_unchecked() }
    }

    /// Returns all of the window.
    #[inline(always)]
    pub fn whole(self) -> &'static Window {
        self.window
    }

    /// Returns the part that this process has.
    #[inline(always)]
    pub fn node(self) -> &'static LocalWindow {
        match &self.window.carrier {
            Carrier::Node(node) => node,
            Carrier::Wide(_) | Carrier::Host(_) => unreachable!("a window of one node"),
        }
    }
}

impl Deref for QuickWindow {
    type Target = Window;

    #[inline(always)]
    fn deref(&self) -> &Window {
        self.window
    }
}
