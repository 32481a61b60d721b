//! Adoption: pages that the program has already, such as those of malloc, become pages of the heap
//! at the same addresses, so that other processes reach them by load and store. They stay so while
//! a window is over them, and are private again when the last one is freed. Each window that wants
//! its memory adopted calls [`may_take`], and [`take`] once the ranks of its node are quiet; it
//! keeps the [`Adopted`] as long as it lives. Several windows over one page share its adoption.
//!
//! Pages move in a quiet part of MPI_Win_create and MPI_Win_free alone ([`Quiet`]): no thread, no
//! system call and no other process uses them, and the kernel has said that nothing else holds
//! them. `docs/internals/adoption.md` states how each of that is established. What is not
//! established does not move, with the reason ([`NotAdopted`]); the window then reaches the memory
//! as before (`fabric::cma`).
//!
//! | page                        | in this state         | mapped here                      |
//! |-----------------------------|-----------------------|----------------------------------|
//! | private                     | no                    | the program's anonymous memory   |
//! | adopted                     | n > 0 windows over it | a page of the heap               |
//! | left over: not given back   | 0 windows over it     | a page of the heap, tried again  |

mod adoption_state;
mod allowance;
mod madvise_calls;
mod own_tools;
mod policy;
mod quiet_ranks;
mod refusal;
mod runs;

pub use quiet_ranks::Quiet;
pub use refusal::NotAdopted;

use super::{HeapPlace, heap};
use crate::config::Adopt;
use crate::sys::adopt::areas::{self, Area};
use crate::sys::adopt::helper_threads::OtherThreads;
use crate::sys::adopt::page_moves::PageMove;
use crate::sys::adopt::{discards, process_state};
use crate::sys::life::now_ns;
use crate::sys::{page_bytes, process};
use adoption_state::{AdoptionState, HeapLease};
use refusal::Adoption;
use runs::Stretch;
use std::sync::Arc;

/// Bytes of a huge page.
const HUGE: u64 = 2 << 20;

/// A part of a window whose pages belong to the heap. Dropping it counts one window less over them;
/// [`give_back_unheld`] makes pages without a window private again.
#[derive(Debug)]
pub struct Adopted {
    address: u64,
    bytes: u64,
    place: HeapPlace,
    /// the process that it belongs to
    pid: i32,
}

impl Adopted {
    /// Returns the address and the length in bytes of what other processes reach by load and store:
    /// the whole part, or the part without bytes at its begin and end that lie in pages with other
    /// objects. Never empty.
    pub fn inner(&self) -> (u64, u64) {
        (self.address, self.bytes)
    }

    /// Returns the place at which other processes find the first byte of `inner`.
    pub fn place(&self) -> HeapPlace {
        self.place
    }
}

impl Drop for Adopted {
    fn drop(&mut self) {
        if self.pid == process::id() {
            let (first, end) = pages_of(self.address, self.bytes);
            adoption_state::lock().runs.release(first, end);
        }
        // In a child of fork(2) the pages are private already.
    }
}

/// Whether `bytes` bytes at `address`, which belong to a window that is being made, may be adopted,
/// as far as that is known without reading /proc: a rank that wants it asks the others to
/// be quiet. `consent`: FOMPI_ADOPT, as the window's info modifies it ([`Adopt::for_window`]); with
/// `Auto` the window counts by its bytes ([`allowance`]), unless its pages are adopted already.
pub fn may_take(address: u64, bytes: u64, consent: Adopt) -> Adoption<()> {
    if consent == Adopt::Never {
        return Err(NotAdopted::Setting);
    }
    let end = address.checked_add(bytes).filter(|end| *end < i64::MAX as u64);
    if end.is_none_or(|end| end <= address) {
        return Err(NotAdopted::Empty);
    }
    if heap::find(address, bytes).is_some() {
        return Err(NotAdopted::InHeap);
    }
    if consent == Adopt::Auto && !process_state::may_register_across() {
        return Err(NotAdopted::OldKernel);
    }
    let mut state = adoption_state::lock();
    policy::of_process(state.runs.count())?;
    let (first, end) = pages_of(address, bytes);
    let moves = state.runs.stretches(first, end).iter().any(|one| one.lease.is_none());
    let counts = moves && consent != Adopt::Always;
    if counts && !state.allowance.permits((address, bytes), now_ns()) {
        return Err(NotAdopted::Allowance);
    }
    Ok(())
}

/// Adopts `bytes` bytes at `address`, which belong to a window that is being made and for which
/// [`may_take`] has consented, as far as the policy permits it (see [`NotAdopted`]). Makes system
/// calls only, and calls of the C library that memory caches intercept (mmap, mremap).
///
/// If a page is adopted already, for another window, it is shared. If the pages belong to several
/// earlier adoptions, `inner` is the longest run of pages that lie in one.
///
/// # Errors
/// The reason why nothing was adopted. Nothing has changed then for the program.
pub fn take(address: u64, bytes: u64, quiet: &Quiet) -> Adoption<Adopted> {
    let end = address + bytes;
    let mut state = adoption_state::lock();
    let wish = Wish { address, end };
    state.has_tools()?;
    let areas = wish.areas(&state)?;
    let stretch = wish.stretch(&state, quiet, &areas)?;
    let (lease, origin) = match &stretch.lease {
        Some(found) => {
            if !adoption_state::is_laid(&stretch, &areas) {
                return Err(NotAdopted::NotMapped);
            }
            state.runs.hold(stretch.first, stretch.end);
            found.clone()
        }
        None => (move_in(&mut state, &stretch, quiet, &areas)?, stretch.first),
    };
    let address = address.max(stretch.first);
    let place = lease.range.place();
    let place = HeapPlace { name: place.name, offset: place.offset + (address - origin) };
    let bytes = end.min(stretch.end) - address;
    Ok(Adopted { address, bytes, place, pid: process::id() })
}

/// Whether there are adopted pages that no window is over. `dropped`: the adoptions that the caller
/// is about to drop.
pub fn has_unheld(dropped: &[&Adopted]) -> bool {
    let state = adoption_state::lock();
    let own = dropped.iter().filter(|one| one.pid == process::id());
    let mut own = own.map(|one| pages_of(one.address, one.bytes));
    state.runs.has_unheld() || own.any(|(first, end)| state.runs.has_last(first, end))
}

/// Makes all pages private that no window is over, with the bytes that they have now. To be called
/// when no other process accesses them any more.
///
/// # Errors
/// The first reason why some stay pages of the heap. Their bytes are right, too.
pub fn give_back_unheld(quiet: &Quiet) -> Adoption<()> {
    adoption_state::lock().give_back_unheld(quiet)
}

/// Returns the pages that hold a range: the first address, and one past the last.
fn pages_of(address: u64, bytes: u64) -> (u64, u64) {
    (address / page_bytes() * page_bytes(), (address + bytes).next_multiple_of(page_bytes()))
}

/// A part of a window that shall be adopted.
struct Wish {
    address: u64,
    end: u64,
}

impl Wish {
    /// Returns the areas of memory that overlap its pages.
    fn areas(&self, state: &AdoptionState) -> Adoption<Vec<Area>> {
        let (first, end) = pages_of(self.address, self.end - self.address);
        let tools = state.tools.as_ref().ok_or(NotAdopted::Failed)?;
        areas::over(&tools.maps, first, end - first).map_err(|_| NotAdopted::Failed)
    }

    /// Returns the pages to adopt or to share: the longest stretch of one kind, without edges that
    /// must not move.
    fn stretch(
        &self,
        state: &AdoptionState,
        quiet: &Quiet,
        areas: &[Area],
    ) -> Adoption<Stretch<HeapLease>> {
        let (mut first, mut end) = pages_of(self.address, self.end - self.address);
        let mut reason = NotAdopted::OnlyEdges;
        let is_shared = |at| state.runs.stretches(at, at + page_bytes())[0].lease.is_some();
        let has_edges = [self.address != first, self.end != end];
        if has_edges[0]
            && !is_shared(first)
            && let Err(why) = self.edge(quiet, areas, first)
        {
            (first, reason) = (first + page_bytes(), why);
        }
        if has_edges[1]
            && first < end
            && !is_shared(end - page_bytes())
            && let Err(why) = self.edge(quiet, areas, end - page_bytes())
        {
            (end, reason) = (end - page_bytes(), why);
        }
        if first >= end {
            return Err(reason);
        }
        let stretches = state.runs.stretches(first, end);
        let longest = stretches.into_iter().max_by_key(|one| one.end - one.first);
        longest.ok_or(reason)
    }

    /// Whether the page at `at`, which holds other objects too, may move.
    fn edge(&self, quiet: &Quiet, areas: &[Area], at: u64) -> Adoption<()> {
        let is_plain = |page: u64| policy::of_areas(areas, page, page + page_bytes());
        is_plain(at)?;
        let begin = self.address / page_bytes() * page_bytes();
        let is_own = || is_plain(begin).is_ok() && policy::is_own_mapping(self.address, self.end);
        if quiet.others == OtherThreads::None || is_own() {
            Ok(())
        } else {
            Err(NotAdopted::OnlyEdges)
        }
    }
}

/// Moves private pages into the heap, and counts a window over them.
fn move_in(
    state: &mut AdoptionState,
    stretch: &Stretch<HeapLease>,
    quiet: &Quiet,
    areas: &[Area],
) -> Adoption<Arc<HeapLease>> {
    let Stretch { first, end, .. } = *stretch;
    let bytes = end - first;
    let areas = policy::of_areas(areas, first, end)?;
    let kept_flags = quiet.permits(first, end)?;
    let tools = state.tools.as_ref().ok_or(NotAdopted::Failed)?;
    let pagemap = &tools.pagemap;
    let huge = bytes >= HUGE && quiet.has_huge_page(first, end);
    heap::set_fork_hooks(&adoption_state::FORK_HOOKS);
    let range = heap::take_empty(bytes, first).map_err(|_| NotAdopted::NoMemory)?;
    let lease = Arc::new(HeapLease { range, huge });
    let room = lease.room(first, first);
    state.madvise_calls.lead_here();
    if !discards::note(first, end, room.mapped) {
        return Err(NotAdopted::NoMemory);
    }
    let moved = PageMove { pagemap, address: first, bytes, room, kept_flags };
    // SAFETY: the areas are private anonymous memory, and none of the stack or the state of
    // this thread; the ranks of the node are quiet (`take`); the lease is new.
    if let Err(halted) = unsafe { moved.move_in(&areas) } {
        return Err(state.keep_left_over(stretch, &halted, lease));
    }
    state.runs.add(first, end, lease.clone(), first, 1);
    Ok(lease)
}

#[cfg(test)]
mod tests;
