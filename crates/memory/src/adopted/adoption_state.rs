//! The state of adoption in this process, under one lock: which pages are adopted. A fork waits for
//! moves, and a child copies the pages as those of MPI_Alloc_mem (`heap::fork_copies`): it has
//! private pages at the same addresses, and no adopted ones.

use super::allowance::Allowance;
use super::madvise_calls::MadviseCalls;
use super::own_tools::OwnTools;
use super::policy::is_used_to_move;
use super::quiet_ranks::Quiet;
use super::refusal::{Adoption, NotAdopted};
use super::runs::{PageRuns, Stretch};
use crate::error::Error;
use crate::heap::{ForkHooks, HeapRange};
use crate::number::Number;
use crate::sys::adopt::areas::{self, Area};
use crate::sys::adopt::page_moves::{Halted, PageMove, Room};
use crate::sys::adopt::{discards, unshared};
use crate::sys::fork::SegmentPart;
use crate::sys::{page_bytes, process};
use crate::{gpu, maps};
use parking_lot::lock_api::RawMutex as _;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

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

    /// Returns the offset in the segment of an address, if the lease begins at `origin`.
    fn offset(&self, at: u64, origin: u64) -> u64 {
        self.range.place().offset + (at - origin)
    }

    /// Whether an area shows the segment to the program: mappings of this library do not.
    fn is_shown_by(&self, area: &Area) -> bool {
        let place = self.range.place();
        let heap = self.range.base().addr().to_u64() - place.offset;
        let is_heap = area.start < heap + place.name.bytes && area.end > heap;
        let is_own = is_heap || maps::hold(area.start);
        let file = (area.device, area.inode) == (place.name.device, place.name.inode);
        area.is_shared && file && !is_own
    }
}

/// A part of a lease that the program sees.
#[derive(Clone, Copy)]
struct Shown {
    /// its addresses
    address: u64,
    bytes: u64,
    /// its offset in the segment
    offset: u64,
    /// whether it may be read and written, and not executed
    is_plain_data: bool,
}

impl Shown {
    /// Returns the address at which the lease would begin.
    fn origin(&self, lease: &HeapLease) -> u64 {
        self.address - (self.offset - lease.range.place().offset)
    }

    /// Returns the rest of it behind `bytes` bytes.
    fn behind(self, bytes: u64) -> Shown {
        let (address, offset) = (self.address + bytes, self.offset + bytes);
        Shown { address, offset, bytes: self.bytes - bytes, ..self }
    }
}

/// The state.
pub struct AdoptionState {
    /// the process that it belongs to; 0: none yet
    pid: i32,
    /// the adopted pages
    pub runs: PageRuns<HeapLease>,
    /// what this process moves pages with; `None`: not opened yet, or refused
    pub tools: Option<OwnTools>,
    /// how much more may move
    pub allowance: Allowance,
    /// the calls of madvise, which come by here from the first move on
    pub madvise_calls: MadviseCalls,
    /// what a child of the fork(2) that is under way copies
    fork_parts: Vec<SegmentPart>,
}

// SAFETY: the addresses of `fork_parts` are numbers for the thread that forks.
unsafe impl Send for AdoptionState {}

static STATE: Mutex<AdoptionState> = Mutex::new(AdoptionState {
    pid: 0,
    runs: PageRuns::NONE,
    tools: None,
    allowance: Allowance::UNUSED,
    madvise_calls: MadviseCalls::ELSEWHERE,
    fork_parts: Vec::new(),
});

/// Makes children of fork(2) copy adopted pages. To be set before a page moves.
pub static FORK_HOOKS: ForkHooks =
    ForkHooks { before: lock_for_fork, parts: show_parts, in_parent: unlock, in_child: start_anew };

/// Returns the state of this process. Waits for moves of other threads.
pub fn lock() -> MutexGuard<'static, AdoptionState> {
    let mut state = STATE.lock();
    let pid = process::id();
    if state.pid != pid {
        // The pages of a parent are private copies here.
        state.runs.forget();
        (state.tools, state.pid) = (None, pid);
    }
    state
}

impl AdoptionState {
    /// Opens the tools, if they are not open.
    pub fn has_tools(&mut self) -> Adoption<()> {
        if !unshared::is_answered() {
            return Err(NotAdopted::NoKernel);
        }
        if self.tools.as_ref().is_none_or(|tools| !tools.are_open()) {
            self.tools = OwnTools::open();
        }
        if self.tools.is_some() { Ok(()) } else { Err(NotAdopted::Failed) }
    }

    /// Returns the parts of a stretch's lease that the program sees, wherever they are, by their
    /// offsets. The program may have moved or unmapped them.
    fn shown(&self, stretch: &Stretch<HeapLease>) -> Adoption<Vec<Shown>> {
        let Some((lease, origin)) = &stretch.lease else { return Ok(Vec::new()) };
        let tools = self.tools.as_ref().ok_or(NotAdopted::Failed)?;
        let all = areas::over(&tools.maps, 0, i64::MAX as u64).map_err(|_| NotAdopted::Failed)?;
        let (begin, end) =
            (lease.offset(stretch.first, *origin), lease.offset(stretch.end, *origin));
        let part = |area: &Area| {
            let offset = area.offset.max(begin);
            let stop = (area.offset + (area.end - area.start)).min(end);
            let address = area.start + (offset - area.offset.min(offset));
            let is_plain_data = area.is_plain_data;
            (offset < stop).then(|| Shown { address, bytes: stop - offset, offset, is_plain_data })
        };
        let shown = all.iter().filter(|area| lease.is_shown_by(area));
        let mut parts: Vec<Shown> = shown.filter_map(part).collect();
        parts.sort_by_key(|part| part.offset);
        Ok(parts)
    }

    /// Returns all adopted pages that the program sees, wherever they are.
    fn all_shown(&mut self) -> Vec<SegmentPart> {
        let mut all = Vec::new();
        for stretch in self.runs.all() {
            let parts = self.has_tools().and_then(|()| self.shown(&stretch));
            let Some((lease, _)) = &stretch.lease else { continue };
            all.extend(parts.unwrap_or_default().iter().map(|part| SegmentPart {
                name: lease.range.place().name,
                offset: part.offset,
                base: core::ptr::with_exposed_provenance_mut(part.address.to_usize()),
                bytes: part.bytes,
            }));
        }
        all
    }

    /// Records what a move in has left in the heap. Returns the reason for its end.
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

    /// Makes all pages private that no window is over. The ranks of the node are quiet. Returns the
    /// first reason why some stay; these stay recorded.
    pub fn give_back_unheld(&mut self, quiet: &Quiet) -> Adoption<()> {
        let mut result = Ok(());
        for stretch in self.runs.unheld() {
            let given = self.has_tools().and_then(|()| self.give_back(&stretch, quiet));
            result = result.and(given);
        }
        result
    }

    fn give_back(&mut self, stretch: &Stretch<HeapLease>, quiet: &Quiet) -> Adoption<()> {
        if gpu::is_any_pinned(stretch.first, stretch.end, page_bytes()) {
            return Err(NotAdopted::Gpu);
        }
        let parts = self.shown(stretch)?;
        let Some((lease, _)) = stretch.lease.clone() else { return Ok(()) };
        // From here on the state has the parts that stay, and where they are.
        discards::forget(stretch.first, stretch.end); // ahead of the lease, which others may get
        self.runs.remove(stretch.first, stretch.end);
        let overlap = |pair: &[Shown]| pair[0].offset + pair[0].bytes > pair[1].offset;
        let is_twice = parts.windows(2).any(overlap);
        let mut result = Ok(());
        for part in parts {
            let given = match is_twice {
                true => Err((NotAdopted::Shared, 0)),
                false => self.part_back(part, &lease, quiet),
            };
            if let Err((why, done)) = given {
                self.keep(part.behind(done), &lease);
                result = result.and(Err(why));
            }
        }
        result
    }

    /// Makes a part private where it lies. The error: why it stays, and how many bytes of it are
    /// private nevertheless.
    fn part_back(
        &self,
        part: Shown,
        lease: &Arc<HeapLease>,
        quiet: &Quiet,
    ) -> core::result::Result<(), (NotAdopted, u64)> {
        let stays = |why| (why, 0);
        if !part.is_plain_data {
            return Err(stays(NotAdopted::Advised));
        }
        let end = part.address + part.bytes;
        if is_used_to_move(part.address, end) {
            return Err(stays(NotAdopted::Stack));
        }
        let kept_flags = quiet.permits(part.address, end).map_err(stays)?;
        let tools = self.tools.as_ref().ok_or(stays(NotAdopted::Failed))?;
        let (pagemap, address, bytes) = (&tools.pagemap, part.address, part.bytes);
        let room = lease.room(part.address, part.origin(lease));
        let moved = PageMove { pagemap, address, bytes, room, kept_flags };
        // SAFETY: the pages of the lease lie there, as /proc/self/maps shows, and may be read
        // and written; the ranks of the node are quiet; no window is over them any more, and this
        // thread does not use them.
        match unsafe { moved.move_back() } {
            Ok(()) => {
                if lease.huge {
                    unshared::collapse(address, bytes);
                }
                Ok(())
            }
            Err(halted) => Err((reason_of(&halted.error), halted.left.0 - address)),
        }
    }

    /// Records a part that stays a page of the heap, with no window over it.
    fn keep(&mut self, part: Shown, lease: &Arc<HeapLease>) {
        let (first, end) = (part.address, part.address + part.bytes);
        let is_free = self.runs.stretches(first, end).iter().all(|other| other.lease.is_none());
        let mapped = lease.room(first, part.origin(lease)).mapped;
        if is_free && discards::note(first, end, mapped) {
            self.runs.add(first, end, lease.clone(), part.origin(lease), 0);
        } else {
            // The program sees it twice, or there is no memory for a record: the lease never ends.
            std::mem::forget(lease.clone());
        }
    }
}

/// Whether all of a stretch lies in its lease still. `areas`: those that overlap the stretch, and
/// maybe others.
pub fn is_laid(stretch: &Stretch<HeapLease>, areas: &[Area]) -> bool {
    let Some((lease, origin)) = &stretch.lease else { return false };
    let bytes = stretch.end - stretch.first;
    let lies = |area: &&Area| {
        let first = area.start.max(stretch.first);
        lease.is_shown_by(area)
            && area.is_plain_data
            && area.offset + (first - area.start) == lease.offset(first, *origin)
    };
    let here = areas.iter().filter(|area| area.start < stretch.end && area.end > stretch.first);
    let laid = here.filter(lies);
    let laid = laid.map(|area| area.end.min(stretch.end) - area.start.max(stretch.first));
    laid.sum::<u64>() == bytes
}

/// Returns the reason for an error of a move.
fn reason_of(error: &Error) -> NotAdopted {
    match error {
        Error::System { call: unshared::NAME, errno: libc::EAGAIN } => NotAdopted::Held,
        Error::System { errno: libc::ENOMEM | libc::ENOSPC | libc::EBUSY, .. } => {
            NotAdopted::NoMemory
        }
        _ => NotAdopted::Failed,
    }
}

fn lock_for_fork() {
    let mut state = lock();
    // Where the pages are now: the program may have moved or unmapped them, and have other memory
    // at their addresses.
    state.fork_parts = if state.runs.is_empty() { Vec::new() } else { state.all_shown() };
    std::mem::forget(state);
}

fn show_parts(show: &mut dyn FnMut(SegmentPart)) {
    // SAFETY: `lock_for_fork` has locked it in this thread, or in the parent of this child.
    let state = unsafe { &*STATE.data_ptr() };
    state.fork_parts.iter().for_each(|part| show(*part));
}

fn unlock() {
    // SAFETY: `lock_for_fork` has locked it in this thread.
    unsafe { STATE.force_unlock() };
}

fn start_anew() {
    // Threads of the parent that wait for the lock do not exist here, so it is initialised again.
    // SAFETY: no other thread uses it; the state is consistent, because this thread had locked it.
    unsafe { core::ptr::from_ref(STATE.raw()).cast_mut().write(parking_lot::RawMutex::INIT) };
}
