//! A window as a fast-path call sees it, in two cache lines: the first one of
//! [`Window`](super::Window), which is a [`WindowHead`], and the record of the target, [`Target`];
//! and the tables in which such a call finds the window, which `registry` fills. `target` makes the
//! records. The checks of bounds return no error here; those of `address` do.

use super::countdown::{Countdown, QUICK_PER_FULL};
use super::wide::target_records::{Data, WideTarget};
use crate::datatype::basic::Basic;
use crate::epoch::access::{TargetAccess, WindowAccess};
use crate::epoch::state::Epochs;
use crate::fabric::Way;
use crate::fabric::location::{Distant, Location, Unmapped};
use crate::fabric::net::Peer;
use crate::fabric::remote::Remote;
use crate::fabric::shm::mapped::copy;
use crate::mpi::{EntryName, Handle, Host};
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode};
use crate::sync::{AtomicPtr, AtomicU64, Ordering, computed, subtract_at, subtract_with_fence};
use crate::util::known::Known;
use core::ffi::c_int;
use core::hint::assert_unchecked;
use core::mem::offset_of;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock};

/// The begin of a window: the state that calls of the fast path read, in one cache line, and the
/// countdown.
#[repr(C, align(64))]
pub struct WindowHead {
    /// its handle, see `registry`
    pub handle: u32,
    /// the bit of this rank's pass (`epoch::lock::passes`), in the word to which a target leads
    pub(super) pass: u64,
    /// the host MPI, for its datatypes and operations; null in unit tests
    pub(super) host: *const Host,
    /// the records of its targets, if all its ranks are on this node
    pub(super) targets: Targets,
    /// those of a window over several nodes that is not dynamic, in its carrier; null: of another
    pub(super) wide: *const Known<Rank, WideRecord>,
    /// the epochs that this process is in
    pub epochs: Epochs,
    /// the calls until one of them makes progress of the host MPI
    pub countdown: Countdown,
}

// SAFETY: the host MPI is for all threads, as all else is.
unsafe impl Send for WindowHead {}
// SAFETY: as for `Send`.
unsafe impl Sync for WindowHead {}

const _: () = assert!(offset_of!(WindowHead, epochs.access) + size_of::<WindowAccess>() <= 64);

/// The targets of one window, whose ranks are all on this node.
#[repr(C)]
pub struct Targets {
    /// the table: that of the arena, or one of its own
    pub(super) table: AtomicPtr<AtomicPtr<Target>>,
    /// the table of the arena
    pub(super) none: *const AtomicPtr<Target>,
    /// the number of ranks; 0: the window has none on this node, or others, too
    pub(super) size: u32,
}

impl Targets {
    /// Returns the record of a target, for any number as a rank, which may be that of no target;
    /// `None` if the window has no such rank.
    #[inline(always)]
    pub fn of(&self, rank: RankOnNode) -> Option<&Target> {
        if rank.0 >= self.size {
            return None;
        }
        // Acquire: pairs with the Release in `own_table`.
        let table = self.table.load(Ordering::Acquire);
        // SAFETY: a table has an entry for each rank of the window.
        let entry = unsafe { &*table.wrapping_add(rank.0 as usize) };
        // Acquire: pairs with the Release in `insert`.
        let target = computed!(entry.load(Ordering::Acquire));
        // SAFETY: a record that lives as long as this table. The caller's test for `None` then
        // needs no instruction.
        unsafe {
            assert_unchecked(!target.is_null());
            Some(&*target)
        }
    }
}

/// A target: its epoch, and its memory that is mapped here. It may be empty.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Target {
    /// its memory that is mapped here, as this process reaches it
    pub(super) extent: Extent,
    /// its word with the pass of this rank (`epoch::lock::passes`)
    pub(super) pass: *const AtomicU64,
    /// how this process may access it now
    pub access: TargetAccess,
}

const _: () = assert!(size_of::<Target>() == 64);

impl Target {
    /// Returns the word with the pass of this rank.
    #[inline(always)]
    pub fn pass(&self) -> &AtomicU64 {
        // SAFETY: guaranteed by the caller of `new`.
        unsafe { &*self.pass }
    }
}

/// Memory of a target, and the displacements that are inside. It may have no byte.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// where it begins, at displacement `disp_min`: in this process, or on another node
    pub(super) at: *mut u8,
    pub(super) bytes: u64,
    /// the displacement unit in bytes
    pub(super) disp_unit: u64,
    /// the first displacement inside
    pub(super) disp_min: u64,
    /// the largest displacement from there whose first byte is in `bytes`, or right behind them
    pub(super) disp_max: u64,
    /// whether it is the beginning of a [`DistantTarget`]; otherwise it is mapped here
    pub(super) is_distant: bool,
}

// SAFETY: the address is of shared memory, or of no memory of this process.
unsafe impl Send for Extent {}
// SAFETY: as for `Send`.
unsafe impl Sync for Extent {}

impl Extent {
    /// No memory.
    pub(super) const NOTHING: Extent = Extent {
        at: ptr::null_mut(),
        bytes: 0,
        disp_unit: 0,
        disp_min: 0,
        disp_max: 0,
        is_distant: false,
    };

    /// Returns the bytes from offset `first` to `end` of what a target exposes, at `at`, in units
    /// of `disp_unit` bytes.
    pub fn new(at: *mut u8, (first, end): (u64, u64), disp_unit: u64) -> Extent {
        // With a unit of 0 every displacement is at the begin of the memory.
        let disp_min = first.div_ceil(disp_unit.max(1));
        let begin = disp_min.saturating_mul(disp_unit);
        // Only a rank that has damaged its memory maps bytes behind the last displacement.
        let is_any = begin >= first && disp_min <= DISP_MAX;
        let Some(bytes) = end.checked_sub(begin).filter(|_| is_any) else {
            return Extent::NOTHING;
        };
        let at = at.wrapping_add((begin - first).to_usize());
        let disp_max = disp_max(bytes, disp_unit).min(DISP_MAX - disp_min);
        Extent { at, bytes, disp_unit, disp_min, disp_max, is_distant: false }
    }

    /// Returns the offset of displacement `disp` in the memory, and the bytes from there to its
    /// end; `None` if the displacement is negative, ahead of that memory or behind its end.
    #[inline(always)]
    pub fn start(&self, disp: i64) -> Option<(u64, u64)> {
        // A negative displacement, or one that is ahead, is a number above all maxima here.
        let disp = disp.cast_unsigned().wrapping_sub(self.disp_min);
        if disp > self.disp_max {
            return None;
        }
        // Neither wraps around: up to `disp_max` the product is at most `bytes`.
        let first = disp.wrapping_mul(self.disp_unit);
        Some((first, self.bytes.wrapping_sub(first)))
    }

    /// Returns the address of `bytes` bytes from `first` past the displacement; `None` if one of
    /// them is outside.
    #[inline(always)]
    pub fn reach(&self, disp: i64, (first, bytes): (i64, u64)) -> Option<*mut u8> {
        let (start, _) = self.start(disp)?;
        let first = start.checked_add_signed(first)?;
        let behind = self.bytes.checked_sub(first)?;
        (bytes <= behind).then_some(self.at.wrapping_add(first.to_usize()))
    }
}

/// The largest displacement that there is.
const DISP_MAX: u64 = i64::MAX.cast_unsigned();

/// Returns the largest displacement in units of `disp_unit` that is not behind the end of `bytes`
/// bytes. With a unit of 0 every displacement is at their begin.
fn disp_max(bytes: u64, disp_unit: u64) -> u64 {
    bytes.checked_div(disp_unit).unwrap_or(DISP_MAX).min(DISP_MAX)
}

/// What this process knows of a rank of the window.
#[derive(Default)]
pub struct WideRecord {
    /// how it may access the rank now
    pub access: TargetAccess,
    /// how it reaches the rank, from the first contact on
    pub(super) target: OnceLock<WideTarget>,
    /// the memory of a rank of another node, from the first access on
    pub distant: OnceLock<DistantTarget>,
}

/// A rank of another node, as most calls need it.
#[repr(C)]
pub struct DistantTarget {
    /// its memory, by addresses of that node
    pub extent: Extent,
    /// the handle of its window
    pub window: u32,
    /// the key of this memory
    pub key: u64,
    /// the process that serves it
    pub peer: Arc<Peer>,
}

impl DistantTarget {
    /// Returns the location of a number of bytes from the first one past displacement `disp`, if
    /// all of them are inside.
    #[inline(always)]
    pub fn location(&self, disp: i64, bytes: (i64, u64)) -> Option<Location<'_>> {
        let at = self.extent.reach(disp, bytes)?.addr().to_u64();
        let at = Remote { at, key: self.key };
        Some(Location::Unmapped(Unmapped::Distant(Distant { peer: &self.peer, at })))
    }
}

impl WideRecord {
    /// Records the memory of a rank of another node.
    pub fn note_distant(&self, window: u32, target: &WideTarget, data: &Data) {
        let (exposed, Remote { at, key }) = (data.descriptor.get(), data.at);
        let at = ptr::without_provenance_mut(at.to_usize());
        // Memory is shorter than any negative length as a number.
        let end = exposed.exposed.min(i64::MAX.cast_unsigned());
        let extent = Extent::new(at, (0, end), exposed.disp_unit);
        let (extent, peer) = (Extent { is_distant: true, ..extent }, target.peer.clone());
        self.distant.get_or_init(|| DistantTarget { extent, window, key, peer });
    }

    /// Returns the rank as a target if this process has contacted it.
    #[inline]
    pub fn contacted(&self) -> Option<&WideTarget> {
        self.target.get()
    }
}

/// The number of entries of a table.
const ENTRIES: usize = 1 << u16::BITS;

/// The windows for fast-path calls of one kind, by the lower half of the handle; null: none. An
/// entry has a place for each of the two names of a call: its own for PMPI names, and the one above
/// for MPI names. The entries of windows are odd, so that is of no other window.
pub struct QuickTable(pub(super) [AtomicPtr<WindowHead>; ENTRIES + 1]);

/// The windows for fast-path calls that move data: those with a target whose memory is mapped here,
/// and those over several nodes that are not dynamic.
pub static TRANSFERS: QuickTable = QuickTable::new();

/// The windows for fast-path calls that open or close epochs, or complete operations: those without
/// small puts that a call has to complete (`window_puts`).
pub static EPOCHS: QuickTable = QuickTable::new();

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
        let window = self.0[handle % ENTRIES + name as usize].load(Ordering::Acquire);
        let window = QuickWindow(NonNull::new(window)?);
        (window.handle == handle.low_u32()).then_some(window)
    }
}

/// A window that fast-path calls serve.
#[derive(Clone, Copy)]
pub struct QuickWindow(pub(super) NonNull<WindowHead>);

impl Deref for QuickWindow {
    type Target = WindowHead;

    #[inline(always)]
    fn deref(&self) -> &WindowHead {
        // SAFETY: as in `registry::find`.
        unsafe { self.0.as_ref() }
    }
}

impl QuickWindow {
    /// Finds a target of this node that may be accessed now, any number as a rank. Counts a call.
    #[inline(always)]
    pub fn open(self, rank: c_int) -> Option<Quick> {
        let target = self.targets.of(RankOnNode(rank.cast_unsigned()))?;
        if self.is_due::<1>() {
            return None;
        }
        // SAFETY: a record lives as long as its window.
        let target: &'static Target = unsafe { &*ptr::from_ref(target) };
        self.epochs.access.opens(|| &target.access).then_some(Quick { window: self, target })
    }

    /// Finds the memory of a target that may be accessed now, any number as a rank: on this node or
    /// another one. Counts a call.
    #[inline(always)]
    pub fn extent(self, rank: c_int) -> Option<&'static Extent> {
        if let Some(target) = self.targets.of(RankOnNode(rank.cast_unsigned())) {
            if self.is_due::<1>() {
                return None;
            }
            let is_open = self.epochs.access.opens(|| &target.access);
            // SAFETY: a record lives as long as its window.
            return is_open.then_some(unsafe { &*ptr::from_ref(&target.extent) });
        }
        // SAFETY: null, or in the carrier of the window, and lives as long as that.
        let record = unsafe { self.wide.as_ref() }?.recent(Rank(rank.cast_unsigned()))?;
        let is_open = self.epochs.access.opens(|| &record.access);
        if !is_open || self.is_due::<QUICK_PER_FULL>() {
            return None;
        }
        Some(&record.distant.get()?.extent)
    }

    /// Carries out a put or a get of `count` elements of a predefined type without holes at `here`:
    /// copies the bytes, or calls `send` with `here`, the target of another node, the address there
    /// and the number of bytes less one. Returns the code of the call if the arguments were such.
    ///
    /// On paper, a put of eight bytes on one node: window and state 3 loads, type 4 loads and 2
    /// multiplications, view 8 loads and 1 multiplication, 1 load and 1 store for the data, and 12
    /// branches, all predictable. No atomic instruction, no call. docs/internals/hot-path.md says
    /// what they are for.
    ///
    /// # Safety
    /// The elements at `here` may be read or, for a get, written.
    #[inline(always)]
    pub unsafe fn transfer(
        self,
        way: Way,
        extent: &'static Extent,
        (here, count, datatype): (*mut u8, i64, Handle),
        disp: i64,
        send: impl FnOnce(*mut u8, &'static DistantTarget, *mut u8, u64) -> Option<c_int>,
    ) -> Option<c_int> {
        // In this order few values are in use at a time, so that the call needs few registers.
        // SAFETY: the host MPI is never freed.
        let host = unsafe { &*computed!(self.host) };
        let known = host.tables.types.find(datatype)?;
        // No bytes for a type with holes. A negative length is larger than any memory.
        let length = count.checked_mul(i64::from(known.dense_size))?.cast_unsigned();
        let last = computed!(length.wrapping_sub(1));
        let (first, bytes_left) = extent.start(disp)?;
        let at = computed!(extent.at.wrapping_add(first.to_usize()));
        let bytes_left = computed!(bytes_left);
        // One comparison: 0 bytes have become the largest number.
        if last >= bytes_left {
            return None;
        }
        if extent.is_distant {
            // SAFETY: such an extent is the first field of a target.
            let target = unsafe { &*ptr::from_ref(extent).cast() };
            // Hidden, so that the full call is the only one at the end of this one: with two of
            // them the compiler jumps to neither, and saves registers.
            return send(here, target, at, last).map(|code| computed!(code));
        }
        let length = last.wrapping_add(1);
        // SAFETY: the window's side was checked, the caller guarantees the other one.
        unsafe {
            match way {
                Way::Put => copy(at, here, length),
                Way::Get => copy(here, at, length),
            }
        }
        Some(0)
    }
}

impl WindowHead {
    /// Returns the address of the host MPI; null in unit tests.
    pub(super) fn host_address(&self) -> *const Host {
        self.host
    }

    /// Returns the host MPI.
    #[inline(always)]
    pub fn host(&self) -> &'static Host {
        // SAFETY: it is never freed.
        unsafe { &*self.host }
    }

    /// Counts a call as `CALLS` of the fast path: 1, or [`QUICK_PER_FULL`] at the end of a full
    /// call. Returns whether the host MPI has to make progress (`countdown`), which a full call
    /// does ([`Window::countdown_ended`](super::Window::countdown_ended)).
    ///
    /// [`QUICK_PER_FULL`]: super::countdown::QUICK_PER_FULL
    #[inline(always)]
    pub fn is_due<const CALLS: i32>(&self) -> bool {
        // SAFETY: the number is at the beginning of the countdown.
        unsafe { subtract_at::<_, { offset_of!(WindowHead, countdown) }, CALLS>(self) }
    }

    /// Like [`WindowHead::is_due`], with a full barrier before.
    #[inline(always)]
    pub fn is_due_behind_fence(&self) -> bool {
        // SAFETY: as in `is_due`.
        unsafe { subtract_with_fence::<_, { offset_of!(WindowHead, countdown) }>(self) }
    }

    /// Whether a target, any number as a rank, is in a passive target epoch.
    #[inline(always)]
    pub fn is_passive(&self, rank: Rank) -> bool {
        // SAFETY: a rank of the window.
        let target = || unsafe { self.targets.of(rank.on_only_node()).unwrap_unchecked() };
        rank.0 < self.targets.size && self.epochs.access.locks(|| &target().access)
    }
}

/// The window and the target of a call on the fast path.
#[derive(Clone, Copy)]
pub struct Quick {
    /// the window
    pub window: QuickWindow,
    /// the record of the target
    pub target: &'static Target,
}

impl Quick {
    /// Finds one of our windows, and a target that may be accessed now. Returns `None` for anything
    /// unusual; the full call carries that out, or finds the error.
    #[inline(always)]
    pub fn open(win: usize, rank: c_int, entry: EntryName) -> Option<Quick> {
        TRANSFERS.find(win, entry)?.open(rank)
    }

    /// Whether the target is in a passive target epoch.
    #[inline(always)]
    pub fn is_passive(&self) -> bool {
        self.window.epochs.access.locks(|| &self.target.access)
    }

    /// Carries out a put or a get as [`QuickWindow::transfer`].
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub unsafe fn transfer_here(
        &self,
        way: Way,
        from: (*mut u8, i64, Handle),
        disp: i64,
    ) -> Option<()> {
        let extent = &self.target.extent;
        // SAFETY: guaranteed by the caller.
        unsafe { self.window.transfer(way, extent, from, disp, |_, _, _, _| None) }.map(drop)
    }

    /// Returns the address of an element of a predefined type that one atomic instruction may
    /// change now, and the function with that instruction, which `kernel` finds: this rank may
    /// change single words there (`epoch::lock::passes`), the address is a multiple of the size, a
    /// power of two or none, and the element is inside.
    #[inline(always)]
    pub fn word<K>(
        &self,
        (disp, datatype): (i64, Handle),
        kernel: impl FnOnce(&Host, Basic) -> Option<K>,
    ) -> Option<(*mut u8, K)> {
        // SAFETY: as in `transfer`, and so is the order of the steps.
        let host = unsafe { &*computed!(self.window.host) };
        let known = host.tables.types.find(datatype)?;
        let bytes = computed!(u64::from(known.size));
        let kernel = kernel(host, known.basic)?;
        // Acquire: the operation is ordered after this load. It pairs with the Release by which the
        // rank got its pass.
        if self.target.pass().load(Ordering::Acquire) & self.window.pass == 0 {
            return None;
        }
        let (first, bytes_left) = self.target.extent.start(disp)?;
        let at = computed!(self.target.extent.at.wrapping_add(first.to_usize()));
        let bytes_left = computed!(bytes_left);
        // For 0 bytes the mask has all bits.
        let mask = bytes.wrapping_sub(1);
        (mask < bytes_left && at.addr().to_u64() & mask == 0).then_some((at, kernel))
    }
}

#[cfg(test)]
mod tests;
