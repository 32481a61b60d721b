//! From a window handle to the window, without a call of the MPI underneath.
//!
//! A handle is the same integer in every ABI and in Fortran:
//! `0x20000001 | generation << 17 | slot << 1`, 26 bits of our own below MPICH's tag for window
//! handles with the kind "invalid". It is odd, so it is never a pointer of the MPI underneath, and
//! it is never MPI_WIN_NULL of any ABI. A handle that was freed is known by its generation.

use super::Window;
use crate::error::{Class, Error, Result};
use crate::sync::{AtomicPtr, Ordering};
use core::ptr;
use parking_lot::Mutex;

const TAG: usize = 0x2000_0001;
const TAG_MASK: usize = !0x03ff_fffe;
const SLOT_BITS: u32 = 16;
const SLOTS: usize = 1 << SLOT_BITS;
const GENERATIONS: u32 = 1 << 9;

/// The windows by slot; null: none. Filled by `insert`, emptied by `remove`.
static WINDOWS: [AtomicPtr<Window>; SLOTS] = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS];

/// Slots to be used next.
struct Free {
    /// slots that were freed, with the generation for the next window in them
    again: Vec<(u32, u32)>,
    /// the first slot that was never used
    next: u32,
}

static FREE: Mutex<Free> = Mutex::new(Free { again: Vec::new(), next: 0 });

/// What a handle means.
pub enum Found {
    /// a window of ours
    Window(&'static Window),
    /// a window that the MPI underneath made for itself
    Foreign,
    /// our encoding, but no window (any more)
    Stale,
}

/// The window of a handle, if it is one of ours that lives.
#[inline(always)]
pub fn lookup(handle: usize) -> Option<&'static Window> {
    match find(handle) {
        Found::Window(window) => Some(window),
        _ => None,
    }
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
    if window.handle as usize == handle { Found::Window(window) } else { Found::Stale }
}

/// A place for a window that is being made. Given back if there will be none.
pub struct Entry {
    slot: u32,
    generation: u32,
}

/// Takes a place for a window.
pub fn reserve() -> Result<Entry> {
    let mut free = FREE.lock();
    let (slot, generation) = match free.again.pop() {
        Some(again) => again,
        None if (free.next as usize) < SLOTS => {
            free.next += 1;
            (free.next - 1, 0)
        }
        None => {
            let limit = SLOTS as i64;
            return Err(Error::Argument(Class::Other, "windows alive at once, limit", limit));
        }
    };
    Ok(Entry { slot, generation })
}

impl Entry {
    /// Gives a window its handle and makes it known.
    pub fn insert(self, make: impl FnOnce(u32) -> Window) -> &'static Window {
        let handle = TAG as u32 | self.generation << (SLOT_BITS + 1) | self.slot << 1;
        let window = Box::into_raw(Box::new(make(handle)));
        // Release: pairs with the Acquire in `find`.
        WINDOWS[self.slot as usize].store(window, Ordering::Release);
        core::mem::forget(self);
        // SAFETY: leaked just now; freed by `remove` alone.
        unsafe { &*window }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        FREE.lock().again.push((self.slot, self.generation));
    }
}

/// Forgets a window and frees it.
pub fn remove(window: &'static Window) {
    let slot = (window.handle >> 1) as usize & (SLOTS - 1);
    let generation = ((window.handle >> (SLOT_BITS + 1)) + 1) % GENERATIONS;
    let window = WINDOWS[slot].swap(ptr::null_mut(), Ordering::AcqRel);
    assert!(!window.is_null(), "a window is removed once");
    // SAFETY: leaked by `insert`, and nobody finds it any more.
    drop(unsafe { Box::from_raw(window) });
    FREE.lock().again.push((slot as u32, generation % GENERATIONS));
}
