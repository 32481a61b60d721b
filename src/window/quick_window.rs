//! A window as a fast-path call sees it, in two cache lines: the first one of [`Window`], with the
//! epoch, and its [`QuickPart`]; and the tables in which such a call finds it, which `registry`
//! fills.

use super::target::{QuickPart, Target};
use super::target_counter::TargetCounter;
use super::{Carrier, LocalWindow, Window};
use crate::datatype::basic::Basic;
use crate::epoch::access::WindowAccess;
use crate::mpi::comm::Comm;
use crate::mpi::{EntryName, Handle, Host};
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::sync::{AtomicPtr, Ordering, computed, subtract_at, subtract_with_fence};
use core::ffi::c_int;
use core::mem::offset_of;
use core::ops::Deref;
use core::ptr;

const _: () = assert!(align_of::<Window>() == 64);
const _: () = assert!(offset_of!(Window, epochs.access) + size_of::<WindowAccess>() <= 64);

/// The number of entries of a table.
const ENTRIES: usize = 1 << u16::BITS;

/// The windows for fast-path calls of one kind, by the lower half of the handle; null: none. An
/// entry has a place for each of the two names of a call ([`place_of`]).
pub struct QuickTable([AtomicPtr<Window>; ENTRIES + 1]);

/// The windows for fast-path calls that move data: those with a target whose memory is mapped here.
pub static TRANSFERS: QuickTable = QuickTable::new();

/// The windows for fast-path calls that open or close epochs, or complete operations: those without
/// small puts that a call has to complete (`window_puts`).
pub static EPOCHS: QuickTable = QuickTable::new();

/// Returns the place of an entry for calls by this name. The entries of windows are odd, so the
/// place above is that of no other window.
#[inline(always)]
fn place_of(entry: usize, name: EntryName) -> usize {
    match name {
        EntryName::Mpi => entry + 1,
        EntryName::Pmpi => entry,
    }
}

impl QuickTable {
    /// Returns a table without windows.
    const fn new() -> QuickTable {
        QuickTable([const { AtomicPtr::new(ptr::null_mut()) }; ENTRIES + 1])
    }

    /// Returns the window of a handle as the caller passed it, if calls by this name are for
    /// libfompi. Six instructions and two loads: no check of the encoding, because an entry
    /// compares its handle with all 32 bits that a handle may have. Garbage above them does not
    /// matter, and a handle of the host MPI is even in its lower half.
    #[inline(always)]
    pub fn find(&'static self, handle: usize, name: EntryName) -> Option<QuickWindow> {
        // Acquire: pairs with the Release in `enter`.
        let window = self.0[place_of(usize::from(handle.low_u16()), name)].load(Ordering::Acquire);
        // SAFETY: null, or as in `registry::find`.
        let window: &'static Window = unsafe { window.as_ref() }?;
        // SAFETY: the callers of `enter` checked that it has a part for fast-path calls.
        let window = unsafe { QuickWindow::new(window) };
        (window.part().handle == handle.low_u32()).then_some(window)
    }

    /// Enters a window, by the names whose calls are known to be for libfompi.
    pub(super) fn enter(&self, window: *mut Window, entry: usize) {
        for name in [EntryName::Mpi, EntryName::Pmpi] {
            if Host::known(name).is_some() {
                // Release: pairs with the Acquire in `find`.
                self.0[place_of(entry, name)].store(window, Ordering::Release);
            }
        }
    }

    /// Takes a window out.
    pub(super) fn leave(&self, entry: usize) {
        for name in [EntryName::Mpi, EntryName::Pmpi] {
            // Relaxed: a thread that must complete the small put for which the window leaves has
            // synchronised with the thread that made it. No call uses a window while it is freed.
            self.0[place_of(entry, name)].store(ptr::null_mut(), Ordering::Relaxed);
        }
    }

    /// Takes all windows out, up to the entry `last`.
    pub(super) fn leave_all(&self, last: usize) {
        for place in self.0.iter().take(last + 2) {
            // Relaxed: as the caller of the registry needs it.
            if !place.load(Ordering::Relaxed).is_null() {
                place.store(ptr::null_mut(), Ordering::Relaxed);
            }
        }
    }
}

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
        unsafe { subtract_at::<_, { offset_of!(Window, countdown) }, 1>(self.window) }
    }

    /// Like [`QuickWindow::is_due`], with a full barrier before.
    #[inline(always)]
    pub fn is_due_behind_fence(self) -> bool {
        // SAFETY: as in `is_due`.
        unsafe { subtract_with_fence::<_, { offset_of!(Window, countdown) }>(self.window) }
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

/// The target of a call on the fast path.
#[derive(Clone, Copy)]
pub struct Quick {
    window: QuickWindow,
    /// its record
    pub target: &'static Target,
}

impl Quick {
    /// Finds one of our windows, and a target that may be accessed now. Returns `None` for anything
    /// unusual; the full call carries that out, or finds the error.
    #[inline(always)]
    pub fn open(win: usize, rank: c_int, entry: EntryName) -> Option<Quick> {
        let window = TRANSFERS.find(win, entry)?;
        if window.is_due() {
            return None;
        }
        let target = window.target(Rank(rank.cast_unsigned()))?;
        window.epochs.access.opens(|| &target.access).then_some(Quick { window, target })
    }

    /// Returns a counter of the target, whose rank is given again, if it may be notified now.
    #[inline(always)]
    pub fn counter(&self, rank: c_int, index: c_int) -> Option<TargetCounter<'static>> {
        let counter = self.window.mapped_counter(Rank(rank.cast_unsigned()), index)?;
        self.is_passive().then_some(counter)
    }

    /// Returns the window's communicator.
    pub fn comm(&self) -> Comm {
        self.window.node().comm()
    }

    /// Whether the target is in a passive target epoch.
    #[inline(always)]
    pub fn is_passive(&self) -> bool {
        self.window.epochs.access.locks(|| &self.target.access)
    }

    /// Returns the host MPI.
    #[inline(always)]
    pub fn host(&self) -> &'static Host {
        self.window.host()
    }

    /// Returns the address of an element of a predefined type that one atomic instruction may
    /// change now, and the function with that instruction, which `kernel` finds.
    #[inline(always)]
    pub fn word<K>(
        &self,
        (disp, datatype): (i64, Handle),
        kernel: impl FnOnce(&Host, Basic) -> Option<K>,
    ) -> Option<(*mut u8, K)> {
        // In this order few values are in use at a time, so that the call needs few registers.
        let host = self.host();
        let known = host.tables.types.find(datatype)?;
        let bytes = computed!(u64::from(known.size));
        let kernel = kernel(host, known.basic)?;
        let at = self.target.word_at(self.window.part().pass, disp, bytes)?;
        Some((at, kernel))
    }
}
