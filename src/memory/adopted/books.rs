//! The state of adoption in this process, under one lock: which pages are adopted, and what moves
//! cost. A fork waits for moves, and a child copies the pages as those of MPI_Alloc_mem
//! (`heap::fork_copies`): it has private pages at the same addresses, and no adopted ones.

use super::budget::{Budget, Direction, weight};
use super::freed::Freed;
use super::madvise_calls::MadviseCalls;
use super::own_tools::OwnTools;
use super::refusal::NotAdopted;
use super::runs::{PageRuns, Stretch};
use crate::error::{Error, Result};
use crate::memory::gpu;
use crate::memory::heap::{self, Beside, HeapRange};
use crate::number::Number;
use crate::sys::adopt::areas::Area;
use crate::sys::adopt::discards;
use crate::sys::adopt::page_moves::{self, Halted, PageMove, Room};
use crate::sys::adopt::process_state;
use crate::sys::fork::SegmentPart;
use crate::sys::{page_bytes, process};
use parking_lot::lock_api::RawMutex as _;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// The time in nanoseconds after which the process is looked through for an io_uring again.
const LOOK_AGAIN: u64 = 10_000_000;

/// Memory of the heap that pages have moved into.
pub struct HeapLease {
    /// the memory
    pub range: HeapRange,
    /// whether the pages were huge before
    pub huge: bool,
}

impl HeapLease {
    /// Returns its part for the page at `at`, if it begins at `origin`.
    pub fn room(&self, at: u64, origin: u64) -> Room {
        let place = self.range.place();
        let (descriptor, mapped) = (self.range.descriptor(), self.range.base());
        Room { descriptor, offset: place.offset, mapped }.behind(at - origin)
    }

    /// Whether the page at `at` is mapped there, by the area that holds it.
    fn lies_at(&self, at: u64, origin: u64, area: &Area) -> bool {
        let place = self.range.place();
        let file = (area.device, area.inode) == (place.name.device, place.name.inode);
        area.is_shared && file && area.offset + (at - area.start) == place.offset + (at - origin)
    }
}

/// The state.
pub struct Books {
    /// the process that it belongs to; 0: none yet
    pid: i32,
    /// the adopted pages
    pub runs: PageRuns<HeapLease>,
    /// what this process moves pages with; `None`: not opened yet, or refused
    pub tools: Option<OwnTools>,
    /// whether the system has refused the tools
    pub is_refused: bool,
    /// costs and budget
    pub budget: Budget,
    /// the windows that were freed last
    pub freed: Freed,
    /// mappings made so far, which do not merge again
    pub mappings: u64,
    /// when the process was last found without an io_uring or AIO context
    looked: u64,
    /// the calls of madvise, which come by here from the first move on
    pub madvise_calls: MadviseCalls,
}

static BOOKS: Mutex<Books> = Mutex::new(Books {
    pid: 0,
    runs: PageRuns::NONE,
    tools: None,
    is_refused: false,
    budget: Budget::UNKNOWN,
    freed: Freed::NONE,
    mappings: 0,
    looked: 0,
    madvise_calls: MadviseCalls::ELSEWHERE,
});

static BESIDE: Beside =
    Beside { before: lock_for_fork, parts: show_parts, in_parent: unlock, in_child: start_anew };

/// Returns the state of this process. Waits for moves of other threads.
pub fn lock() -> MutexGuard<'static, Books> {
    let mut books = BOOKS.lock();
    let pid = process::id();
    if books.pid != pid {
        // The pages of a parent are private copies here.
        books.runs.forget();
        (books.tools, books.is_refused, books.looked, books.pid) = (None, false, 0, pid);
    }
    books
}

/// Returns nanoseconds since some fixed time.
pub fn now() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    1_000_000_000 * now.tv_sec.cast_unsigned() + now.tv_nsec.cast_unsigned()
}

impl Books {
    /// Makes children of fork(2) copy adopted pages. To be called before a page moves.
    pub fn watch_forks() {
        heap::watch_beside(&BESIDE);
    }

    /// Opens the tools, if they are not open. Returns false if the system refuses them.
    pub fn has_tools(&mut self) -> bool {
        if self.tools.as_ref().is_some_and(|tools| !tools.are_open()) {
            self.tools = None;
        }
        if self.tools.is_none() && !self.is_refused {
            self.tools = OwnTools::open();
            self.is_refused = self.tools.is_none();
        }
        self.tools.is_some()
    }

    /// Whether the process has an io_uring or AIO context. To look takes as long as moving a few
    /// pages; so an answer of `false` counts for a while.
    pub fn has_direct_io(&mut self, device: u64, now: u64) -> bool {
        if self.looked != 0 && now < self.looked + LOOK_AGAIN {
            return false;
        }
        let found = process_state::has_direct_io(device);
        self.looked = if found { 0 } else { now };
        found
    }

    /// Returns the parts of a stretch that lie in its lease still. The program may have mapped
    /// other memory there, which is wrong while a window is over it, and not while none is.
    fn still_laid(&mut self, stretch: &Stretch<HeapLease>) -> Result<Vec<(u64, u64)>> {
        let Some((lease, origin)) = &stretch.lease else { return Ok(Vec::new()) };
        let tools = self.tools.as_mut().ok_or(Error::System { call: "userfaultfd", errno: 0 })?;
        let areas = tools.areas().over(stretch.first, stretch.end - stretch.first)?;
        let parts = areas.iter().map(|area| {
            let (first, end) = (area.start.max(stretch.first), area.end.min(stretch.end));
            (area, first, end)
        });
        let laid = parts.filter(|(area, first, _)| lease.lies_at(*first, *origin, area));
        Ok(laid.map(|(_, first, end)| (first, end)).collect())
    }

    /// Whether all of a stretch lies in its lease still.
    pub fn is_laid(&mut self, stretch: &Stretch<HeapLease>) -> bool {
        let bytes = |laid: Vec<(u64, u64)>| laid.iter().map(|(first, end)| end - first).sum();
        self.still_laid(stretch).map_or(0, bytes) == stretch.end - stretch.first
    }

    /// Notes what a move in has left in the heap. Returns the reason for its end.
    pub fn keep_left_over(
        &mut self,
        stretch: &Stretch<HeapLease>,
        halted: &Halted,
        lease: Arc<HeapLease>,
    ) -> NotAdopted {
        let (at, end) = (halted.left.0, halted.left.0 + halted.left.1);
        discards::forget(stretch.first, at);
        discards::forget(end, stretch.end);
        if at < end {
            self.runs.add(at, end, lease, stretch.first, 0);
        }
        reason_of(&halted.error)
    }

    /// Makes all pages private that no window is over. Returns the first error; the pages that
    /// could not move stay in the books.
    pub fn give_back_unheld(&mut self) -> Result<()> {
        let mut result = Ok(());
        for stretch in self.runs.unheld() {
            if !self.has_tools() {
                return Err(Error::System { call: "userfaultfd", errno: libc::EPERM });
            }
            let start = now();
            let given = self.give_back(&stretch);
            if let Ok(touched) = given {
                let weight = weight((stretch.end - stretch.first) / page_bytes(), touched);
                self.budget.moved(Direction::Back, weight, now() - start);
            }
            result = result.and(given.map(drop));
        }
        result
    }

    /// Returns how many pages had memory.
    fn give_back(&mut self, stretch: &Stretch<HeapLease>) -> Result<u64> {
        if gpu::is_any_pinned(stretch.first, stretch.end, page_bytes()) {
            // A library that came behind the adoption; the GPU would write to the old pages.
            return Err(Error::System { call: "move of memory of a GPU", errno: libc::EBUSY });
        }
        let laid = self.still_laid(stretch)?;
        let Some(((lease, origin), tools)) = stretch.lease.as_ref().zip(self.tools.as_ref()) else {
            return Ok(0);
        };
        let (mut at, mut touched) = (stretch.first, 0);
        for (first, end) in laid {
            let (tools, room) = (tools.for_moves(), lease.room(first, *origin));
            let bytes = end - first;
            let moved = PageMove { tools, address: first, bytes, room, finds_users: false };
            // SAFETY: the pages of the lease lie there, as the system has just told; no window is
            // over them any more; the stack and the state of a thread were never moved.
            touched += match unsafe { moved.move_back() } {
                Ok(touched) => touched,
                Err(halted) => {
                    remove(&mut self.runs, at, halted.left.0);
                    return Err(halted.error);
                }
            };
            if lease.huge {
                page_moves::collapse(first, bytes);
            }
            remove(&mut self.runs, at, end);
            at = end;
        }
        remove(&mut self.runs, at, stretch.end);
        Ok(touched)
    }
}

/// Removes pages, which are private now.
fn remove(runs: &mut PageRuns<HeapLease>, first: u64, end: u64) {
    discards::forget(first, end); // ahead of the lease, which other pages may get then
    runs.remove(first, end);
}

/// Returns the reason for an error of a move.
fn reason_of(error: &Error) -> NotAdopted {
    match error {
        Error::System { call: "ioctl UFFDIO_MOVE", errno: libc::EBUSY } => NotAdopted::Pinned,
        Error::System { errno: libc::EBUSY, .. } => NotAdopted::Watched,
        Error::System { errno: libc::EAGAIN, .. } => NotAdopted::Threads,
        Error::System { errno: libc::ENOMEM | libc::ENOSPC, .. } => NotAdopted::NoMemory,
        _ => NotAdopted::Failed,
    }
}

fn lock_for_fork() {
    std::mem::forget(lock());
}

fn show_parts(show: &mut dyn FnMut(SegmentPart)) {
    // SAFETY: `lock_for_fork` has locked it in this thread, or in the parent of this child.
    let books = unsafe { &*BOOKS.data_ptr() };
    books.runs.each(|first, end, lease, origin| {
        let place = lease.range.place();
        let (name, offset) = (place.name, place.offset + (first - origin));
        let base = core::ptr::with_exposed_provenance_mut(first.to_usize());
        show(SegmentPart { name, offset, base, bytes: end - first });
    });
}

fn unlock() {
    // SAFETY: `lock_for_fork` has locked it in this thread.
    unsafe { BOOKS.force_unlock() };
}

fn start_anew() {
    // Threads of the parent that wait for the lock do not exist here, so it is initialised again.
    // SAFETY: no other thread uses it; the state is consistent, because this thread had locked it.
    unsafe { core::ptr::from_ref(BOOKS.raw()).cast_mut().write(parking_lot::RawMutex::INIT) };
}
