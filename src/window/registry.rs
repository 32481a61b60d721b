//! The lookup of a window by its handle, without a call of the host MPI.
//!
//! A handle is the same integer in every ABI and in Fortran:
//! `0x20000001 | generation << 17 | slot << 1`, 26 bits below MPICH's tag for window handles with
//! the kind "invalid". It is odd, so it is never a pointer of the host MPI, and it is never
//! MPI_WIN_NULL of any ABI.
//!
//! The library assigns handles in the order of their numbers, slot by slot and round by round, and
//! skips slots in use. So it recognises a freed handle until some 33 million more windows
//! ([`HANDLES`]) have been made; only then a new window gets the same number.

use super::Window;
use super::quick_window::{EPOCHS, QuickTable, TRANSFERS, WindowHead};
use super::window_puts::WindowPuts;
use crate::error::{Error, Result};
use crate::memory::gpu;
use crate::messages;
use crate::mpi::{EntryName, Host};
use crate::number::Number;
use crate::sync::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};
use crate::sys::process;
use core::ptr;
use parking_lot::Mutex;

const TAG: usize = 0x2000_0001;
const TAG_MASK: usize = !0x03ff_fffe;
const SLOTS: usize = 1 << 16;
/// The number of different handles: 9 bits of generation above the slot.
#[expect(clippy::cast_possible_truncation)] // a small constant
const HANDLES: u32 = (SLOTS as u32) << 9;

/// The windows by slot; null: none. Filled by `insert`, emptied by `remove`.
static WINDOWS: [AtomicPtr<Window>; SLOTS] = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS];

/// The highest entry in [`TRANSFERS`] so far.
static LAST_TRANSFER: AtomicUsize = AtomicUsize::new(0);

/// The handles that are free.
struct Free {
    /// one bit for each slot that is in use
    used: [u64; SLOTS / 64],
    /// the number of the next handle if its slot is free: the generation above the slot
    next: u32,
    /// how often [`session_may_come`] was called
    raised: u64,
}

/// The process that has made windows; 0: none.
static OWNER: AtomicI32 = AtomicI32::new(0);

static FREE: Mutex<Free> = Mutex::new(Free::ALL);

impl Free {
    const ALL: Free = Free { used: [0; SLOTS / 64], next: 0, raised: 0 };

    /// Takes the next handle whose slot is free, and returns its number. The slot is in use from
    /// now on.
    fn take(&mut self) -> Option<u32> {
        for _ in 0..SLOTS {
            let number = self.next;
            self.next = (number + 1) % HANDLES;
            let (word, bit) = place(number.to_usize() % SLOTS);
            if self.used[word] & bit == 0 {
                self.used[word] |= bit;
                return Some(number);
            }
        }
        None
    }

    /// Frees a slot.
    fn give_back(&mut self, slot: usize) {
        let (word, bit) = place(slot);
        self.used[word] &= !bit;
    }
}

/// Returns the word and the bit of a slot.
fn place(slot: usize) -> (usize, u64) {
    (slot / 64, 1 << (slot % 64))
}

/// Returns the slot of a window.
fn slot_of(handle: u32) -> usize {
    (handle >> 1).to_usize() % SLOTS
}

/// The meaning of a handle.
pub enum Found {
    /// a window of libfompi
    Window(&'static Window),
    /// a window that the host MPI made for itself
    Foreign,
    /// a number of libfompi's encoding without a window
    Stale,
}

/// Looks a handle up.
#[inline(always)]
pub fn find(handle: usize) -> Found {
    if handle & TAG_MASK != TAG {
        return Found::Foreign;
    }
    let slot = (handle >> 1) & (SLOTS - 1);
    // Acquire: pairs with the Release in `insert`.
    let window = WINDOWS[slot].load(Ordering::Acquire);
    if window.is_null() {
        return Found::Stale;
    }
    // SAFETY: non-null entries point to windows that `insert` leaked; a program that frees a
    // window while it uses it in another thread is erroneous (MPI-4.1 §11.6.2).
    let window: &'static Window = unsafe { &*window };
    if window.handle.to_usize() == handle { Found::Window(window) } else { Found::Stale }
}

impl QuickTable {
    /// Enters a window, by the names whose calls are known to be for libfompi.
    fn enter(&self, window: *mut Window, entry: usize) {
        for name in [EntryName::Mpi, EntryName::Pmpi] {
            if Host::known(name).is_some() {
                // Release: pairs with the Acquire in `find`.
                self.0[entry + name as usize].store(window.cast::<WindowHead>(), Ordering::Release);
            }
        }
    }

    /// Takes a window out.
    fn leave(&self, entry: usize) {
        for place in &self.0[entry..entry + 2] {
            // Relaxed: a thread that must complete the small put for which the window leaves has
            // synchronised with the thread that made it. No call uses a window while it is freed.
            place.store(ptr::null_mut(), Ordering::Relaxed);
        }
    }

    /// Takes all windows out, up to the entry `last`.
    fn leave_all(&self, last: usize) {
        for place in self.0.iter().take(last + 2) {
            // Relaxed: as the caller needs it.
            if !place.load(Ordering::Relaxed).is_null() {
                place.store(ptr::null_mut(), Ordering::Relaxed);
            }
        }
    }
}

/// Returns the entry of a window for fast-path calls, if it has one.
fn quick_entry(handle: u32) -> Option<usize> {
    let entry = usize::from(handle.low_u16());
    (slot_of(handle) == entry >> 1).then_some(entry)
}

/// Enters a window for fast-path calls if they can serve it. The lock of [`FREE`] is held, so that
/// no window begins to change its entries itself.
fn serve(window: &Window) {
    let Some(entry) = quick_entry(window.handle) else { return };
    let entered = ptr::from_ref(window).cast_mut();
    let used = || window.local().is_some_and(|node| node.small_puts.have_been_used());
    if window.is_on_one_node() && window.as_duplicate().is_none() && !used() {
        EPOCHS.enter(entered, entry);
    }
    if !window.wide.is_null() || window.targets.all().any(|(_, target)| target.is_mapped()) {
        enter_transfers(window, entry);
    }
}

/// Enters a window for fast-path calls that move data, unless full calls alone do what it asks for
/// with each transfer, or buffers may be memory of a GPU (`library_loads`). The lock of [`FREE`] is
/// held.
fn enter_transfers(window: &Window, entry: usize) {
    let is_checked = window.local().is_some_and(|node| node.conflicts.is_some());
    if is_checked || !window.defaults.is_none() {
        return;
    }
    let window = ptr::from_ref(window).cast_mut();
    // Relaxed: `gpu::are_absent` orders it.
    LAST_TRANSFER.fetch_max(entry, Ordering::Relaxed);
    TRANSFERS.enter(window, entry);
    if !gpu::are_absent() {
        TRANSFERS.leave(entry);
    }
}

/// Takes all windows out of those for fast-path calls that move data, behind [`gpu::may_come`].
/// Takes no lock: a child of fork(2) may load libraries.
pub(super) fn withdraw_transfers() {
    // Relaxed: `gpu::may_come` orders it.
    TRANSFERS.leave_all(LAST_TRANSFER.load(Ordering::Relaxed));
}

/// Lets fast-path calls that move data serve all windows again.
pub(super) fn serve_transfers_again() {
    for_each(serve);
}

/// Enters a window for fast-path calls that move data, after the first record of a target. A thread
/// that learns that no tool is behind finds the record, or this thread finds its result.
#[cold]
pub(super) fn serve_transfers(handle: u32) {
    let _free = FREE.lock();
    let window = WINDOWS[slot_of(handle)].load(Ordering::Relaxed); // one that this thread uses
    // SAFETY: as above.
    if let (Some(entry), Some(window)) = (quick_entry(handle), unsafe { window.as_ref() }) {
        enter_transfers(window, entry);
    }
}

/// Leaves the entry of a window for other fast-path calls to its small puts by process_vm, ahead of
/// the first one. From now on only [`withdraw`] and [`serve_again`] change it, in turns.
#[cold]
pub(super) fn leave_entry_to(window: &Window, puts: &WindowPuts) {
    let _free = FREE.lock();
    let window = window.source();
    let has_entry = window.is_on_one_node() && quick_entry(window.handle).is_some();
    puts.note(has_entry.then_some(window.handle));
}

/// Takes a window, which fast-path calls can serve, out of those that do not transfer, ahead of a
/// small put that a later call completes.
#[inline]
pub(super) fn withdraw(handle: u32) {
    EPOCHS.leave(usize::from(handle.low_u16()));
}

/// Lets these fast-path calls serve a window again, behind the small puts for which it was
/// withdrawn.
#[inline]
pub(super) fn serve_again(handle: u32) {
    let window = WINDOWS[slot_of(handle)].load(Ordering::Relaxed); // one that this thread uses
    EPOCHS.enter(window, usize::from(handle.low_u16()));
}

/// Lets fast-path calls by their MPI names find all windows. `Host::known` knows that these calls
/// are for libfompi.
pub fn no_tool_is_behind() {
    for_each(serve);
}

/// A place for a window that is being made. It is freed when this is dropped without a window.
pub struct Entry {
    /// generation and slot
    number: u32,
    /// how often [`session_may_come`] had been called
    raised: u64,
}

/// Takes a place for a window.
pub fn reserve() -> Result<Entry> {
    // Relaxed: a number that does not change.
    OWNER.store(process::id(), Ordering::Relaxed);
    let mut free = FREE.lock();
    let (number, raised) = (free.take(), free.raised);
    drop(free);
    let limit = Error::Argument(&messages::TOO_MANY_WINDOWS, SLOTS.to_u64().cast_signed());
    number.map(|number| Entry { number, raised }).ok_or(limit)
}

impl Entry {
    fn slot(&self) -> usize {
        self.number.to_usize() % SLOTS
    }

    /// Makes a window with the handle of this place, and enters it in the registry.
    pub fn insert(self, make: impl FnOnce(u32) -> Window) -> &'static Window {
        let handle = TAG.to_u32() | self.number << 1;
        let window = Box::into_raw(Box::new(make(handle)));
        // SAFETY: leaked just now; freed by `remove` alone.
        let known: &'static Window = unsafe { &*window };
        let free = FREE.lock();
        // Release: pairs with the Acquire in `find`.
        WINDOWS[self.slot()].store(window, Ordering::Release);
        serve(known);
        // Meanwhile another thread has prepared all windows that it has found.
        if free.raised != self.raised {
            known.session_may_come();
        }
        drop(free);
        core::mem::forget(self);
        known
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        FREE.lock().give_back(self.slot());
    }
}

/// Prepares all windows for calls of several threads, also those that are being made. Does nothing
/// in a child of fork(2), which has no thread to release the lock.
pub(super) fn session_may_come() {
    // Relaxed: as in `reserve`.
    if OWNER.load(Ordering::Relaxed) == process::id() {
        FREE.lock().raised += 1;
        for_each(Window::session_may_come);
    }
}

/// Returns how often [`session_may_come`] was called.
pub(super) fn times_raised() -> u64 {
    FREE.lock().raised
}

/// Takes back what [`session_may_come`] has done, if it was called this often.
pub(super) fn no_session_came(times: u64) {
    let free = FREE.lock();
    if free.raised == times {
        free.for_each(Window::no_session_came);
    }
}

/// Does `work` with each window of this process. No window is made or freed meanwhile.
pub fn for_each(work: impl FnMut(&Window)) {
    FREE.lock().for_each(work);
}

impl Free {
    /// Does `work` with each window.
    fn for_each(&self, mut work: impl FnMut(&Window)) {
        for (word, used) in self.used.iter().enumerate().filter(|(_, used)| **used != 0) {
            for slot in (0..64).filter(|bit| used & 1 << bit != 0).map(|bit| 64 * word + bit) {
                // Acquire: pairs with the Release in `insert`.
                let window = WINDOWS[slot].load(Ordering::Acquire);
                // SAFETY: null, or leaked by `insert`; `remove` takes it out under the lock that is
                // held, before it frees it.
                if let Some(window) = unsafe { window.as_ref() } {
                    work(window);
                }
            }
        }
    }
}

/// Removes a window from the registry, and returns it to be freed.
pub fn remove(window: &'static Window) -> Box<Window> {
    let slot = slot_of(window.handle);
    let free = FREE.lock();
    if let Some(entry) = quick_entry(window.handle) {
        EPOCHS.leave(entry);
        TRANSFERS.leave(entry);
    }
    let window = WINDOWS[slot].swap(ptr::null_mut(), Ordering::AcqRel);
    drop(free);
    assert!(!window.is_null(), "a window is removed once");
    // SAFETY: leaked by `insert`, and no lookup finds it any more.
    let window = unsafe { Box::from_raw(window) };
    FREE.lock().give_back(slot);
    window
}

#[cfg(test)]
mod tests;
