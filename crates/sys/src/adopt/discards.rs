//! Adopted pages that the program discards: madvise(2) with MADV_DONTNEED promises that private
//! memory reads as zero afterwards, and leaves the bytes of a shared segment as they are. So
//! [`advise`] also takes such pages out of the segment. Allocators call madvise under their own
//! locks, so this file neither allocates nor waits for a thread that does: the table of adopted
//! pages has a fixed size, and costs memory when it is used. The lock of a step (`move_lock`)
//! protects it.
//!
//! The table may have extra pages, because they are recorded before they move and forgotten after
//! they have moved back. A part of the segment whose page is not there has no memory, and to
//! discard it changes nothing.
//!
//! Not for program libraries that make the system call by themselves, such as the C library's own
//! malloc. These discard only whole pages without a live object.

use super::move_lock::StepLock;
use crate::number::Number;
use crate::sync::{AtomicU64, Ordering, full_fence};
use crate::{page_bytes, process};
use core::cell::UnsafeCell;
use core::ptr;

/// MADV_DONTNEED_LOCKED (5.18)
const DONTNEED_LOCKED: i32 = 24;
/// MADV_GUARD_INSTALL (6.13), which discards the bytes of private memory, too
const GUARD_INSTALL: i32 = 102;
/// Entries of the table, several for each part that may be adopted (`memory::adopted::policy`).
const ROOM: usize = 1 << 16;

/// Pages of the program, and the second mapping of their part of the segment.
#[derive(Clone, Copy)]
struct Noted {
    first: u64,
    end: u64,
    mapped: u64,
}

impl Noted {
    /// Returns the part of it from `first` to `end`, if there is any.
    fn within(self, first: u64, end: u64) -> Option<Noted> {
        let (from, to) = (self.first.max(first), self.end.min(end));
        let mapped = self.mapped.wrapping_add(from.wrapping_sub(self.first));
        (from < to).then_some(Noted { first: from, end: to, mapped })
    }
}

/// The table.
struct Table {
    /// the process whose pages they are
    pid: i32,
    count: usize,
    all: [Noted; ROOM],
}

/// The table of this process. Invariant: only the holder of the step lock touches it.
struct Shared(UnsafeCell<Table>);

// SAFETY: see the invariant.
unsafe impl Sync for Shared {}

static TABLE: Shared = Shared(UnsafeCell::new(Table {
    pid: 0,
    count: 0,
    all: [Noted { first: 0, end: 0, mapped: 0 }; ROOM],
}));
/// The entries of the table: 0 while no page is adopted. Changed under the step lock.
static ENTRIES: AtomicU64 = AtomicU64::new(0);

/// Runs `work` on the table, with the lock held.
fn with_table<T>(work: impl FnOnce(&mut Table) -> T) -> T {
    let _lock = StepLock::take();
    // SAFETY: the lock is held, and `work` does not come here again.
    let table = unsafe { &mut *TABLE.0.get() };
    let own = process::id();
    if table.pid != own {
        (table.pid, table.count) = (own, 0); // a child of fork(2): its pages are private
    }
    let answer = work(table);
    // Release pairs with the Acquire of `advise`: the pages are recorded before they move.
    ENTRIES.store(table.count.to_u64(), Ordering::Release);
    answer
}

impl Table {
    fn entries(&mut self) -> &mut [Noted] {
        &mut self.all[..self.count]
    }

    fn push(&mut self, noted: Noted) -> bool {
        let has_room = self.count < ROOM;
        if has_room {
            self.all[self.count] = noted;
            self.count += 1;
        }
        has_room
    }
}

/// Records that the pages from `first` to `end` are about to move to a part of a segment, which is
/// mapped at `mapped`, too. Returns false if there is no room for that.
pub fn note(first: u64, end: u64, mapped: *mut u8) -> bool {
    let mapped = mapped.expose_provenance().to_u64();
    with_table(|table| table.push(Noted { first, end, mapped }))
}

/// Forgets pages, which are private now.
pub fn forget(first: u64, end: u64) {
    with_table(|table| {
        let mut at = 0;
        while at < table.count {
            let noted = table.entries()[at];
            if noted.within(first, end).is_none() {
                at += 1;
                continue;
            }
            let last = table.count - 1;
            table.entries().swap(at, last);
            table.count = last;
            // Without room for two rests the second one loses the promise of zero bytes.
            for rest in [noted.within(0, first), noted.within(end, u64::MAX)].into_iter().flatten()
            {
                table.push(rest);
            }
        }
    });
}

/// A call of madvise(2) with its arguments: address, bytes, advice. Returns 0, or -1 and `errno`.
pub type Advise = unsafe extern "C" fn(*mut libc::c_void, usize, i32) -> i32;

/// Makes the system call itself.
///
/// # Safety
/// The duties of the caller of madvise(2).
pub unsafe extern "C" fn bare(address: *mut libc::c_void, bytes: usize, advice: i32) -> i32 {
    // SAFETY: the caller's duties are those of madvise.
    match unsafe { libc::syscall(libc::SYS_madvise, address, bytes, advice) } {
        0 => 0,
        _ => -1,
    }
}

/// Gives an advice by `next`. If it discards adopted pages, they read as zero afterwards, here and
/// in other processes.
///
/// # Safety
/// The duties of the caller of madvise(2).
pub unsafe fn advise(next: Advise, address: *mut libc::c_void, bytes: usize, advice: i32) -> i32 {
    if advice == libc::MADV_REMOVE && is_noted(address, bytes) {
        // SAFETY: `errno` of this thread.
        unsafe { *libc::__errno_location() = libc::EINVAL };
        return -1; // as for private memory
    }
    // SAFETY: guaranteed by the caller.
    let answer = unsafe { next(address, bytes, advice) };
    // Read afterwards: if a page moves meanwhile, it was recorded before its bytes were copied. The
    // system's own locks need not order its stores before this load.
    full_fence();
    // Acquire pairs with the Release of `with_table`.
    if ENTRIES.load(Ordering::Acquire) == 0 {
        return answer;
    }
    match advice {
        libc::MADV_DONTNEED | libc::MADV_FREE | DONTNEED_LOCKED | GUARD_INSTALL => {
            // SAFETY: guaranteed by the caller.
            unsafe { discard(answer, address, bytes, advice) }
        }
        _ => answer,
    }
}

/// Whether a part of a range is adopted.
fn is_noted(address: *mut libc::c_void, bytes: usize) -> bool {
    let first = address.addr().to_u64();
    let end = first.saturating_add(bytes.to_u64());
    // Acquire, as in `advise`.
    ENTRIES.load(Ordering::Acquire) > 0
        && with_table(|table| {
            table.entries().iter().any(|noted| noted.within(first, end).is_some())
        })
}

/// Discards what is adopted of a range. `answer`: that of `next`, returned if nothing is.
///
/// # Safety
/// As for `advise`.
#[cold]
unsafe fn discard(answer: i32, address: *mut libc::c_void, bytes: usize, advice: i32) -> i32 {
    // SAFETY: `errno` of this thread.
    let errno = || unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno() };
    let first = address.addr().to_u64();
    let end = first.saturating_add(bytes.to_u64()).checked_next_multiple_of(page_bytes());
    let Some(end) = end else { return answer };
    let (answer, error) = with_table(|table| {
        if table.entries().iter().all(|noted| noted.within(first, end).is_none()) {
            return (answer, before);
        }
        // Shared memory has no MADV_FREE, which may discard at once.
        let advice = if advice == libc::MADV_FREE { libc::MADV_DONTNEED } else { advice };
        // Once more, since pages may have moved after the first time.
        // SAFETY: guaranteed by the caller.
        let answer = unsafe { bare(address, bytes, advice) };
        // SAFETY: as above. A call that succeeds leaves it alone.
        let error = if answer == 0 { before } else { unsafe { *errno() } };
        // ENOMEM: a part was not mapped; all else was discarded.
        if answer == 0 || error == libc::ENOMEM {
            let entries = table.entries().iter();
            entries.filter_map(|noted| noted.within(first, end)).for_each(Noted::punch);
        }
        (answer, error)
    });
    // SAFETY: as above.
    unsafe { *errno() = error };
    answer
}

impl Noted {
    /// Makes its bytes zero, and gives the memory to the system.
    fn punch(self) {
        let (at, bytes) = (self.mapped, (self.end - self.first).to_usize());
        // SAFETY: a part of the segment that the program has just discarded.
        let punched = unsafe { libc::syscall(libc::SYS_madvise, at, bytes, libc::MADV_REMOVE) };
        if punched != 0 {
            // Locked mappings refuse it (mlockall).
            let at = ptr::with_exposed_provenance_mut::<u8>(at.to_usize());
            // SAFETY: the same part of the segment, which is mapped here.
            unsafe { at.write_bytes(0, bytes) };
        }
    }
}

#[cfg(test)]
mod tests;
