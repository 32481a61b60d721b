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
    /// The window has a part for quick calls, and so its ranks are on this node.
    #[inline(always)]
    pub(super) unsafe fn new(window: &'static Window) -> QuickWindow {
        debug_assert!(window.quick.is_some() && matches!(window.carrier, Carrier::Node(_)));
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
        // SAFETY: the promise of `new`. A branch to a panic would need a frame in each call.
        unsafe { self.window.local().unwrap_unchecked() }
    }
}

impl Deref for QuickWindow {
    type Target = Window;

    #[inline(always)]
    fn deref(&self) -> &Window {
        self.window
    }
}
