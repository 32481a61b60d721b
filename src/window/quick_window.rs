//! A window as a fast-path call sees it, in two cache lines: the first one of [`Window`], with the
//! epoch, and its [`QuickPart`]. `registry` finds it.

use super::target::{QuickPart, Target};
use super::{Carrier, LocalWindow, Window};
use crate::epoch::access::WindowAccess;
use crate::mpi::Host;
use crate::rank_numbers::Rank;
use crate::sync::{computed, count_at, count_with_fence};
use core::mem::offset_of;
use core::ops::Deref;
use core::ptr;

const _: () = assert!(align_of::<Window>() == 64);
const _: () = assert!(offset_of!(Window, epochs.access) + size_of::<WindowAccess>() <= 64);

/// A window with a part for fast-path calls: all its ranks are on this node.
#[derive(Clone, Copy)]
pub struct QuickWindow {
    window: &'static Window,
}

impl QuickWindow {
    /// # Safety
    /// The window has a part for fast-path calls, and so its ranks are on this node.
    #[inline(always)]
    pub(super) unsafe fn new(window: &'static Window) -> QuickWindow {
        debug_assert!(window.quick.is_some() && matches!(window.carrier, Carrier::Node(_)));
        QuickWindow { window }
    }

    /// Returns the part for fast-path calls.
    #[inline(always)]
    pub fn part(self) -> &'static QuickPart {
        // SAFETY: guaranteed by the caller of `new`.
        unsafe { self.window.quick.as_ref().unwrap_unchecked() }
    }

    /// Returns the host MPI.
    #[inline(always)]
    pub fn host(self) -> &'static Host {
        let host = computed!(ptr::from_ref(self.part().host));
        // SAFETY: the address of a reference.
        unsafe { &*host }
    }

    /// Counts a call. Returns whether it has to take the full path, which makes progress of the
    /// host MPI (`countdown`).
    #[inline(always)]
    pub fn is_due(self) -> bool {
        // SAFETY: the number is at the beginning of the countdown.
        unsafe { count_at::<_, { offset_of!(Window, countdown) }, 1>(self.window) }
    }

    /// Like [`QuickWindow::is_due`], with a full barrier before.
    #[inline(always)]
    pub fn is_due_behind_fence(self) -> bool {
        // SAFETY: as in `is_due`.
        unsafe { count_with_fence::<_, { offset_of!(Window, countdown) }>(self.window) }
    }

    /// Returns the record of a target, for any number as a rank; `None` if the window has no such
    /// rank.
    #[inline(always)]
    pub fn target(self, rank: Rank) -> Option<&'static Target> {
        if rank.0 >= self.part().targets.size {
            return None;
        }
        // SAFETY: a rank of the window.
        let target = unsafe { self.part().targets.of(rank.on_only_node()) };
        let target = computed!(ptr::from_ref(target));
        // SAFETY: the address of a reference. The caller's test for `None` then needs no
        // instruction.
        unsafe { core::hint::assert_unchecked(!target.is_null()) };
        // SAFETY: as above.
        Some(unsafe { &*target })
    }

    /// Whether a target, any number as a rank, is in a passive target epoch.
    #[inline(always)]
    pub fn is_passive(self, rank: Rank) -> bool {
        let targets = &self.part().targets;
        // SAFETY: a rank of the window.
        let word = || unsafe { &targets.of(rank.on_only_node()).access };
        rank.0 < targets.size && self.epochs.access.locks(word)
    }

    /// Returns the whole window.
    #[inline(always)]
    pub fn whole(self) -> &'static Window {
        self.window
    }

    /// Returns the part that this process has.
    #[inline(always)]
    pub fn node(self) -> &'static LocalWindow {
        // SAFETY: guaranteed by the caller of `new`. A branch to a panic would need a frame in each
        // call.
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
