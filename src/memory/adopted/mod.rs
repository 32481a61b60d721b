//! Adoption: pages that the program has already, such as those of malloc, become pages of the heap
//! at the same addresses, so that other processes reach them by load and store. They stay so while
//! a window is over them, and are private again before the window is freed. Each window that wants
//! its memory adopted calls [`take`], and keeps the [`Adopted`] as long as it lives. Several
//! windows over one page share its adoption; the last one gives it back.
//!
//! The bytes are right at any time, whatever fails: stores of other threads wait while their page
//! moves, and a move that fails half-way is undone. What cannot move safely is refused, with the
//! reason ([`NotAdopted`]); the window then reaches it as before (`fabric::cma`).
//!
//! Not for finding out whether a window is worth a move ([`price`] only says what it costs), nor
//! for keeping other processes away during a move: the caller does both.
//!
//! | page                        | in the books          | mapped here                      |
//! |-----------------------------|-----------------------|----------------------------------|
//! | private                     | no                    | the program's anonymous memory   |
//! | adopted                     | n > 0 windows over it | a page of the heap               |
//! | left over (give back failed)| 0 windows over it     | a page of the heap, tried again  |

mod books;
mod budget;
mod freed;
mod madvise_calls;
mod own_tools;
mod policy;
mod refusal;
mod runs;

pub use refusal::NotAdopted;

use super::{HeapPlace, heap};
use crate::config::Adopt;
use crate::error::Result;
use crate::number::Number;
use crate::sys::adopt::areas::Area;
use crate::sys::adopt::discards;
use crate::sys::adopt::other_threads::{self, Sleep};
use crate::sys::adopt::page_moves::{self, PageMove};
use crate::sys::adopt::{huge_pages, page_moves::HUGE, process_state};
use crate::sys::{page_bytes, process};
use books::{Books, HeapLease};
use budget::Direction;
use runs::Stretch;
use std::sync::Arc;

/// The moment of a move in the life of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The window is being made: no other process knows the memory, and the calling thread owns it.
    /// The move must fit the budget of this process (unless the consent is `Adopt::Always`).
    Creation,
    /// The window is in use: the caller keeps other processes from copying to the memory
    /// (process_vm) until the call returns. There is no budget; the caller calls when the origins
    /// have spent the price. Where userfaultfd cannot stop the kernel's own writes, the memory
    /// moves only while all other threads of this process sleep in calls without a pointer into it.
    MidLife,
}

/// A part of a window whose pages belong to the heap, until this is given back or dropped.
#[derive(Debug)]
pub struct Adopted {
    address: u64,
    bytes: u64,
    place: HeapPlace,
    /// the process that it belongs to; 0: it has been given back
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

    /// Makes the pages private again that no other window is over, with the bytes that they have
    /// now. To be called when no other process accesses them any more, neither by load and store
    /// nor by process_vm, and before MPI_Win_free or MPI_Win_detach returns.
    ///
    /// # Errors
    /// The system's refusal. The bytes are right then, too. Pages that could not move stay pages
    /// of the heap, and are tried again at the next call of this room. Dropping does the same and
    /// returns nothing.
    pub fn give_back(mut self) -> Result<()> {
        self.release()
    }

    fn release(&mut self) -> Result<()> {
        if std::mem::take(&mut self.pid) != process::id() {
            return Ok(()); // in a child of fork(2) the pages are private already
        }
        let mut books = books::lock();
        let (first, end) = pages_of(self.address, self.bytes);
        books.runs.release(first, end);
        books.give_back_unheld()
    }
}

impl Drop for Adopted {
    fn drop(&mut self) {
        let _ = self.release();
    }
}

/// Adopts `bytes` bytes at `address`, which belong to a window of this process, as far as the
/// policy permits it (see [`NotAdopted`]). Waits for other moves of this process, and takes about
/// [`price`] nanoseconds. Makes system calls only, and calls of the C library that memory caches
/// intercept (mmap); it calls no MPI.
///
/// If a page is adopted already, for another window, it is shared. If the pages belong to several
/// earlier adoptions, `inner` is the longest run of pages that lie in one.
///
/// `when`: see [`When`]. `consent`: FOMPI_ADOPT, as the window's info modifies it
/// ([`Adopt::for_window`]).
///
/// # Errors
/// The reason why nothing was adopted. Nothing has changed then for the program.
/// [`NotAdopted::may_pass`] says whether a later call may succeed.
pub fn take(
    address: u64,
    bytes: u64,
    when: When,
    consent: Adopt,
) -> core::result::Result<Adopted, NotAdopted> {
    if consent == Adopt::Never {
        return Err(NotAdopted::Setting);
    }
    let end = address.checked_add(bytes).filter(|end| *end < i64::MAX as u64);
    let Some(end) = end.filter(|end| *end > address) else { return Err(NotAdopted::Empty) };
    if heap::find(address, bytes).is_some() {
        return Err(NotAdopted::InHeap);
    }
    let mut books = books::lock();
    let now = books::now();
    let wish = Wish { address, end, when, consent, start: now };
    // No system call where the budget is spent: programs make windows in loops.
    if wish.is_budgeted() && books.runs.is_empty() {
        wish.may_look(&mut books, now)?;
    }
    policy::of_process(books.mappings)?;
    if !books.has_tools() {
        return Err(NotAdopted::NoUserfaultfd);
    }
    let _ = books.give_back_unheld();
    let stretch = wish.stretch(&mut books)?;
    let (lease, origin) = match &stretch.lease {
        Some(found) => {
            if !books.is_laid(&stretch) {
                return Err(NotAdopted::NotMapped);
            }
            books.runs.hold(stretch.first, stretch.end);
            found.clone()
        }
        None => (wish.move_in(&mut books, &stretch)?, stretch.first),
    };
    let address = address.max(stretch.first);
    let place = lease.range.place();
    let place = HeapPlace { name: place.name, offset: place.offset + (address - origin) };
    let bytes = end.min(stretch.end) - address;
    Ok(Adopted { address, bytes, place, pid: process::id() })
}

/// Returns the pages that hold a range: the first address, and one past the last.
fn pages_of(address: u64, bytes: u64) -> (u64, u64) {
    (address / page_bytes() * page_bytes(), (address + bytes).next_multiple_of(page_bytes()))
}

/// A part of a window that shall be adopted.
struct Wish {
    address: u64,
    end: u64,
    when: When,
    consent: Adopt,
    /// the time at which `take` began
    start: u64,
}

impl Wish {
    /// Whether the move has to fit the budget.
    fn is_budgeted(&self) -> bool {
        self.when == When::Creation && self.consent != Adopt::Always
    }

    /// Returns the pages to adopt or to share: the longest stretch of one kind, without edges that
    /// must not move.
    fn stretch(&self, books: &mut Books) -> core::result::Result<Stretch<HeapLease>, NotAdopted> {
        let (mut first, mut end) = pages_of(self.address, self.end - self.address);
        let no_tools = NotAdopted::NoUserfaultfd;
        let tools = books.tools.as_mut().ok_or(no_tools)?;
        let areas = tools.areas().over(first, end - first).map_err(|_| NotAdopted::Failed)?;
        let mut reason = NotAdopted::OnlyEdges;
        let is_shared = |at| books.runs.stretches(at, at + page_bytes())[0].lease.is_some();
        let has_edges = [self.address != first, self.end != end];
        if has_edges[0]
            && !is_shared(first)
            && let Err(why) = self.edge(books, &areas, first)
        {
            (first, reason) = (first + page_bytes(), why);
        }
        if has_edges[1]
            && first < end
            && !is_shared(end - page_bytes())
            && let Err(why) = self.edge(books, &areas, end - page_bytes())
        {
            (end, reason) = (end - page_bytes(), why);
        }
        if first >= end {
            return Err(reason);
        }
        let stretches = books.runs.stretches(first, end);
        let longest = stretches.into_iter().max_by_key(|one| one.end - one.first);
        longest.ok_or(reason)
    }

    /// Whether the page at `at`, which holds other objects too, may move.
    fn edge(&self, books: &Books, areas: &[Area], at: u64) -> core::result::Result<(), NotAdopted> {
        let here: Vec<Area> =
            areas.iter().filter(|one| one.start <= at && one.end > at).copied().collect();
        policy::of_areas(&here, at, at + page_bytes())?;
        let is_exact = books.tools.as_ref().is_some_and(|tools| tools.is_exact());
        // SAFETY: the area that holds the page may be read.
        let is_own = unsafe { policy::is_own_mapping(self.address, self.end) };
        if is_exact || is_own || other_threads::count() == 1 {
            return Ok(());
        }
        if !matches!(self.consent, Adopt::Edges | Adopt::Always) {
            return Err(NotAdopted::OnlyEdges);
        }
        let asleep = other_threads::all_sleep(Sleep::Event, at, page_bytes());
        if asleep { Ok(()) } else { Err(NotAdopted::Threads) }
    }

    /// Whether it may be counted which pages have memory, and they may move if they are few, where
    /// the move has to fit the budget.
    fn may_look(&self, books: &mut Books, now: u64) -> core::result::Result<(), NotAdopted> {
        if !books.freed.permits((self.address, self.end - self.address)) {
            return Err(NotAdopted::Again);
        }
        let may_look = books.budget.permits(1, now) && books.budget.may_look(now);
        if may_look { Ok(()) } else { Err(NotAdopted::Budget) }
    }

    /// Whether the move of these pages, the first one and their number, fits the budget at the time
    /// `now`.
    fn may_spend(
        &self,
        books: &mut Books,
        (first, pages): (u64, u64),
        now: u64,
    ) -> core::result::Result<(), NotAdopted> {
        if !self.is_budgeted() {
            return Ok(());
        }
        self.may_look(books, now)?;
        if !books.budget.permits(budget::weight(pages, 0), now) {
            return Err(NotAdopted::Budget);
        }
        let weight = weight_of(books, first, pages).ok_or(NotAdopted::Failed)?;
        if !books.budget.permits(weight, now) {
            books.budget.look(books::now() - now);
            return Err(NotAdopted::Budget);
        }
        Ok(())
    }

    /// Whether a device, io_uring or AIO may use pages of this process, so that the move has to
    /// find those. Refused if it cannot.
    fn has_users(&self, books: &mut Books, now: u64) -> core::result::Result<bool, NotAdopted> {
        let tools = books.tools.as_ref().ok_or(NotAdopted::NoUserfaultfd)?;
        let (can_find, device) = (tools.can_move(), tools.anonymous_device());
        let why = if process_state::pinned_bytes(tools.status()) > 0 {
            NotAdopted::Pinned
        } else if books.has_direct_io(device, now) {
            NotAdopted::DirectIo
        } else {
            return Ok(false);
        };
        policy::of_users(self.consent, can_find, why)
    }

    /// Moves private pages into the heap, and notes a window over them.
    fn move_in(
        &self,
        books: &mut Books,
        stretch: &Stretch<HeapLease>,
    ) -> core::result::Result<Arc<HeapLease>, NotAdopted> {
        let (first, end) = (stretch.first, stretch.end);
        let (bytes, pages) = (end - first, (end - first) / page_bytes());
        let start = self.start;
        self.may_spend(books, (first, pages), start)?;
        let tools = books.tools.as_mut().ok_or(NotAdopted::NoUserfaultfd)?;
        let areas = tools.areas().over(first, bytes).map_err(|_| NotAdopted::Failed)?;
        // A move cuts areas at its ends, unless they end there already.
        let ends_inside = |area: &&Area| area.start < first || area.end > end;
        let cuts = 2 * areas.iter().filter(ends_inside).count().min(1).to_u64();
        let areas = policy::of_areas(&areas, first, end)?;
        let finds_users = self.has_users(books, start)?;
        let tools = books.tools.as_ref().ok_or(NotAdopted::NoUserfaultfd)?;
        let moves = tools.for_moves();
        let huge = bytes >= HUGE && huge_pages::any(moves.pagemap, first, bytes);
        policy::of_locked(self.consent, first, &areas)?;
        Books::watch_forks();
        let range = heap::take_empty(bytes, first).map_err(|_| NotAdopted::NoMemory)?;
        let lease = Arc::new(HeapLease { range, huge });
        let room = lease.room(first, first);
        books.madvise_calls.lead_here();
        let start = books::now();
        if !discards::note(first, end, room.mapped) {
            return Err(NotAdopted::NoMemory);
        }
        let mut permit = Permit { user_only: !tools.is_exact(), wish: self, is_first: true };
        let moved = PageMove { tools: moves, address: first, bytes, room, finds_users };
        // SAFETY: the areas are private anonymous memory, and none of the stack or the state of
        // this thread; the caller keeps other processes away; the lease is new.
        let moved = unsafe { moved.move_in(&areas, &mut |_, _| permit.ask()) };
        books.mappings += cuts;
        let touched = match moved {
            Ok(touched) => touched,
            Err(halted) => return Err(books.keep_left_over(stretch, &halted, lease)),
        };
        if huge {
            page_moves::collapse(first, bytes);
        }
        books.runs.add(first, end, lease.clone(), first, 1);
        let now = books::now();
        let (time, weight) = (now - start, budget::weight(pages, touched));
        books.budget.moved(Direction::In, weight, time);
        if self.is_budgeted() {
            books.budget.spend(weight, time, now);
        }
        Ok(lease)
    }
}

/// Whether a step may begin.
struct Permit<'a> {
    user_only: bool,
    wish: &'a Wish,
    is_first: bool,
}

impl Permit<'_> {
    /// How often a step that is not the first one asks.
    const TURNS: u32 = 50;

    fn ask(&mut self) -> bool {
        if !self.user_only || self.wish.when == When::Creation {
            return true;
        }
        let Wish { address, end, .. } = *self.wish;
        let turns = if std::mem::take(&mut self.is_first) { 1 } else { Permit::TURNS };
        (0..turns).any(|_| {
            let asleep = other_threads::count() == 1
                || other_threads::all_sleep(Sleep::AnyDirect, address, end - address);
            if !asleep {
                std::thread::yield_now();
            }
            asleep
        })
    }
}

/// Returns the weight of pages, see [`budget::weight`].
fn weight_of(books: &Books, first: u64, pages: u64) -> Option<u64> {
    let moves = books.tools.as_ref()?.for_moves();
    let touched = page_moves::touched(moves.pagemap, first, pages).ok()?;
    Some(budget::weight(pages, touched))
}

/// Notes that a window is made, so that the budget begins.
pub fn note_window() {
    books::lock().budget.begin(books::now());
}

/// Returns the nanoseconds that it costs at least to move memory into the heap and back, as far as
/// this process has measured it. `None`: it is known that this process never adopts memory. Makes
/// no system call.
pub fn least_price() -> Option<u64> {
    let books = books::lock();
    (!books.is_refused).then(|| books.budget.price(1))
}

/// Returns the nanoseconds that it costs to move the pages of `bytes` bytes at `address` into the
/// heap and back, as far as this process has measured it: a + b * pages with memory. `None`: this
/// process never adopts memory (no userfaultfd, a limit of the process). Reads which pages have
/// memory.
pub fn price(address: u64, bytes: u64) -> Option<u64> {
    let mut books = books::lock();
    if bytes == 0 || policy::of_process(books.mappings).is_err() || !books.has_tools() {
        return None;
    }
    let (first, end) = pages_of(address, bytes);
    weight_of(&books, first, (end - first) / page_bytes()).map(|weight| books.budget.price(weight))
}

/// Notes that a window over `bytes` bytes at `address` is being freed. `is_used`: whether other
/// ranks have accessed its memory; if not, no memory is adopted at creation any more
/// (`NotAdopted::Budget`) until a window was used. `None`: it is not known. `has_moved`: whether
/// the memory was adopted when the window was made.
pub fn note_freed((address, bytes): (u64, u64), is_used: Option<bool>, has_moved: bool) {
    let mut books = books::lock();
    books.freed.note((address, bytes), is_used.unwrap_or(true));
    if let Some(is_used) = is_used {
        books.budget.freed(is_used, has_moved, books::now());
    }
}

#[cfg(test)]
mod tests;
