//! The memory that this process hands out: ranges of a few large chunks, each a sparse segment that
//! others find by its name and map as a whole. A chunk is twice as large as the one before, so that
//! descriptors do not grow with what is alive, and it is never unmapped: memory of MPI_Alloc_mem
//! can be used until the process ends (MPI-4.1 §9.2). It is not for memory of other processes
//! (`maps`).
//!
//! Memory is taken from the system when it is touched, as that of malloc is, and what is given back
//! keeps it up to a bound ([`retention`]), because pages are most of the cost of a large request.
//! Only where the kernel would refuse a page by a signal
//! ([`limits::are_strict`]) all that is handed out has memory behind it.
//!
//! A child of fork(2) shares the chunks with its parent, but for what MPI_Alloc_mem has handed out
//! ([`fork`]). The heap of the child leaves them alone: what it takes comes from chunks of its own,
//! and what it gives back stays as it is.

use super::ranges::{GRANULE, Ranges, State};
use super::retention::{self, Retention};
use crate::error::{Error, Result};
use crate::sys::limits;
use crate::sys::process;
use crate::sys::segment::{Mapping, Name, PAGE, Segment};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

/// Where chunks begin and end: at multiples of a huge page.
const CHUNK_ALIGNMENT: u64 = 2 << 20;
/// No address can be counted on to be a multiple of more.
const ALIGNMENT_MAX: u64 = 1 << 40;
/// The first chunk is at least this large.
const CHUNK_MIN: u64 = 64 << 20;
/// Small requests are cut from so much at a time.
const BATCH: u64 = 64 << 10;
/// From so many bytes on it is worth asking whether the node can have them at all.
const LARGE: u64 = 16 << 20;

/// A segment of this process, mapped. It lives as long as the process.
struct Chunk {
    segment: Segment,
    mapping: Mapping,
    name: Name,
}

impl Chunk {
    fn bytes(&self) -> u64 {
        self.mapping.bytes() as u64
    }

    /// The offset of a range of addresses, if all of it is in here.
    fn offset_of(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.checked_sub(self.mapping.base().addr() as u64)?;
        (offset.checked_add(bytes)? <= self.bytes()).then_some(offset)
    }

    fn back(&self, offset: u64, bytes: u64) -> Result<()> {
        self.segment.back(&self.mapping, offset, bytes)
    }

    fn give_back(&self, offset: u64, bytes: u64) -> Result<()> {
        self.segment.give_back(&self.mapping, offset, bytes)
    }
}

/// Where other processes find a range; with a name of no bytes, nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Place {
    /// the segment
    pub name: Name,
    /// the first byte in it
    pub offset: u64,
}

/// A range of memory. It is given back when the lease is dropped.
pub struct Lease {
    heap: &'static Heap,
    /// process that took it
    pid: i32,
    chunk: &'static Chunk,
    offset: u64,
    /// bytes that were asked for
    bytes: u64,
    dirty: bool,
}

impl Lease {
    /// Where it starts.
    pub fn base(&self) -> *mut u8 {
        self.chunk.mapping.base().wrapping_add(self.offset as usize)
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where other processes find it.
    pub fn place(&self) -> Place {
        Place { name: self.chunk.name, offset: self.offset }
    }

    /// Whether its bytes may be other than zero.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Backs it with memory, so that touching it later cannot fail.
    pub fn back(&self) -> Result<()> {
        let first = self.offset / PAGE * PAGE;
        let end = (self.offset + self.bytes).next_multiple_of(PAGE);
        self.chunk.back(first, end - first)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.pid == process::id() {
            self.heap.give_back(self.chunk, self.offset, whole(self.bytes));
        }
    }
}

/// What a heap knows.
struct Books {
    /// process that these are about; 0: none yet
    pid: i32,
    chunks: Vec<(&'static Chunk, Ranges)>,
    /// what `allocate` handed out, by address
    allocated: BTreeMap<usize, Lease>,
    /// chunks of the process that this one was forked from
    inherited: Vec<&'static Chunk>,
    retention: Retention,
    /// ranks that share the memory of the node, as far as is known
    ranks: u32,
}

/// A heap. The process has one; tests have their own.
struct Heap {
    books: Mutex<Books>,
    /// whether all that is handed out must have memory behind it
    backs: fn() -> bool,
}

static HEAP: Heap = Heap::new(limits::are_strict);

/// Takes `bytes` bytes whose address is a multiple of `alignment` (a power of two). `NoMemory` if
/// the node can never have so much.
pub fn take(bytes: u64, alignment: u64) -> Result<Lease> {
    HEAP.take(bytes, alignment)
}

/// The same until `release`, for MPI_Alloc_mem. No bytes have an address, too.
pub fn allocate(bytes: u64, alignment: u64) -> Result<*mut u8> {
    fork::watch();
    HEAP.allocate(bytes, alignment)
}

/// Gives back what `allocate` returned. False: it did not return that, or it was given back before.
pub fn release(base: *mut u8) -> bool {
    HEAP.release(base)
}

/// What `allocate` returned that holds a range of addresses: where it begins, and its bytes.
pub fn allocation(address: u64, bytes: u64) -> Option<(u64, u64)> {
    HEAP.allocation(address, bytes)
}

/// Where other processes find a range of addresses, if the whole of it lies in one chunk.
pub fn find(address: u64, bytes: u64) -> Option<Place> {
    HEAP.find(address, bytes)
}

/// Says that so many ranks of a communicator share the memory of the node.
pub fn shared_by(ranks: u32) {
    let mut books = HEAP.books();
    books.ranks = books.ranks.max(ranks);
}

/// The granules that a request occupies, in bytes. At least one: every request has its address.
fn whole(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(GRANULE)
}

impl Heap {
    const fn new(backs: fn() -> bool) -> Heap {
        let books = Books {
            pid: 0,
            chunks: Vec::new(),
            allocated: BTreeMap::new(),
            inherited: Vec::new(),
            retention: Retention::UNKNOWN,
            ranks: 0,
        };
        Heap { books: Mutex::new(books), backs }
    }

    /// The books of this process.
    fn books(&self) -> MutexGuard<'_, Books> {
        let mut books = self.books.lock();
        let pid = process::id();
        if books.pid != pid {
            let chunks = std::mem::take(&mut books.chunks);
            books.inherited.extend(chunks.iter().map(|(chunk, _)| *chunk));
            books.allocated.clear(); // leases of another process give nothing back
            books.pid = pid;
        }
        books
    }

    fn take(&'static self, bytes: u64, alignment: u64) -> Result<Lease> {
        self.take_from(&mut self.books(), bytes, alignment)
    }

    fn take_from(
        &'static self,
        books: &mut MutexGuard<'_, Books>,
        bytes: u64,
        alignment: u64,
    ) -> Result<Lease> {
        assert!(alignment.is_power_of_two());
        if bytes > i64::MAX as u64 || alignment > ALIGNMENT_MAX {
            return Err(Error::NoMemory { bytes });
        }
        let pid = books.pid;
        let lease = |chunk, offset, dirty| Lease { heap: self, pid, chunk, offset, bytes, dirty };
        if let Some((chunk, offset)) = books.take_kept(whole(bytes), alignment) {
            return Ok(lease(chunk, offset, true));
        }
        let (chunk, offset, taken) = books.take_fresh(whole(bytes), alignment)?;
        // Backing many pages takes long, and others need not wait for it.
        let back = || if (self.backs)() { chunk.back(offset, taken) } else { Ok(()) };
        if MutexGuard::unlocked(books, back).is_err() {
            // Some may have memory; if that cannot be given back, nobody gets the range again.
            if chunk.give_back(offset, taken).is_ok() {
                books.give(chunk, offset, taken, State::Fresh);
            }
            return Err(Error::NoMemory { bytes });
        }
        let end = offset + whole(bytes);
        books.give(chunk, end, offset + taken - end, State::Used);
        Ok(lease(chunk, offset, false))
    }

    fn allocate(&'static self, bytes: u64, alignment: u64) -> Result<*mut u8> {
        let mut books = self.books();
        let lease = self.take_from(&mut books, bytes, alignment)?;
        let base = lease.base();
        books.allocated.insert(base.addr(), lease);
        Ok(base)
    }

    fn release(&self, base: *mut u8) -> bool {
        let mut books = self.books();
        let lease = books.allocated.remove(&base.addr());
        let inherited = |chunk: &&Chunk| chunk.offset_of(base.addr() as u64, 1).is_some();
        let is_inherited = books.inherited.iter().any(inherited);
        drop(books); // dropping the lease takes the lock
        lease.is_some() || is_inherited
    }

    fn allocation(&self, address: u64, bytes: u64) -> Option<(u64, u64)> {
        let books = self.books();
        let (base, lease) = books.allocated.range(..=address as usize).next_back()?;
        let end = (*base as u64).checked_add(lease.bytes())?;
        (address.checked_add(bytes)? <= end).then_some((*base as u64, lease.bytes()))
    }

    fn find(&self, address: u64, bytes: u64) -> Option<Place> {
        self.books().chunks.iter().find_map(|(chunk, _)| {
            let offset = chunk.offset_of(address, bytes)?;
            Some(Place { name: chunk.name, offset })
        })
    }

    /// Makes a range free that was taken, and gives memory to the system until no more is kept than
    /// the bound says, the longest runs first. That takes long, so others need not wait for it; the
    /// pages are nobody's meanwhile.
    fn give_back(&self, chunk: &'static Chunk, offset: u64, bytes: u64) {
        let mut books = self.books();
        books.give(chunk, offset, bytes, State::Used);
        books.age();
        while books.kept() > books.retention.bound() {
            let Some((chunk, offset, bytes)) = books.take_longest() else { return };
            let given = MutexGuard::unlocked(&mut books, || chunk.give_back(offset, bytes));
            if given.is_err() {
                return books.give(chunk, offset, bytes, State::Used);
            }
            books.give(chunk, offset, bytes, State::Fresh);
            books.retention.gave_up(bytes);
        }
    }
}

impl Books {
    /// Takes a range of that state in any chunk.
    fn take(&mut self, bytes: u64, alignment: u64, state: State) -> Option<(&'static Chunk, u64)> {
        self.chunks
            .iter_mut()
            .find_map(|(chunk, ranges)| Some((*chunk, ranges.take(bytes, alignment, state)?)))
    }

    /// Takes a range that was used before.
    fn take_kept(&mut self, bytes: u64, alignment: u64) -> Option<(&'static Chunk, u64)> {
        let taken = self.take(bytes, alignment, State::Used)?;
        if self.retention.ages() {
            let left = self.kept();
            self.retention.took_kept(left);
        }
        Some(taken)
    }

    /// Makes a range free.
    fn give(&mut self, chunk: &'static Chunk, offset: u64, bytes: u64, state: State) {
        let ours = self.chunks.iter_mut().find(|(other, _)| std::ptr::eq(*other, chunk));
        if let Some((_, ranges)) = ours {
            ranges.give(offset, bytes, state);
        }
    }

    /// Takes fresh pages for a request, if need be of a new chunk: the chunk, the offset and the
    /// bytes, which are more than asked for where that is little.
    fn take_fresh(&mut self, bytes: u64, alignment: u64) -> Result<(&'static Chunk, u64, u64)> {
        let bytes = bytes.next_multiple_of(PAGE);
        if bytes >= LARGE && !limits::fits(bytes) {
            return Err(limits::too_much(bytes));
        }
        let ranks = if self.ranks > 0 { self.ranks } else { process::cores() as u32 };
        self.retention.took_fresh(bytes, || retention::bound_max(limits::least(), ranks));
        for bytes in [bytes.max(BATCH), bytes] {
            if let Some((chunk, offset)) = self.take(bytes, alignment, State::Fresh) {
                return Ok((chunk, offset, bytes));
            }
        }
        let bytes = bytes.max(BATCH);
        // A chunk begins at a multiple of less than that.
        let skipped = if alignment > CHUNK_ALIGNMENT { alignment } else { 0 };
        let (chunk, ranges) = self.add_chunk(bytes + skipped)?;
        let offset = ranges.take(bytes, alignment, State::Fresh);
        Ok((*chunk, offset.expect("the chunk was made for it"), bytes))
    }

    /// Makes a chunk for a request of `bytes` bytes.
    fn add_chunk(&mut self, bytes: u64) -> Result<&mut (&'static Chunk, Ranges)> {
        let least = bytes.next_multiple_of(CHUNK_ALIGNMENT);
        let last = self.chunks.last().map_or(CHUNK_MIN / 2, |(chunk, _)| chunk.bytes());
        // A limit of the process (RLIMIT_AS, RLIMIT_FSIZE) may allow no more than what is needed.
        let chunk = new_chunk(least.max(2 * last)).or_else(|_| new_chunk(least))?;
        let origin = chunk.mapping.base().addr() as u64;
        self.chunks.push((chunk, Ranges::new(origin, chunk.bytes())));
        Ok(self.chunks.last_mut().expect("it was just pushed"))
    }

    /// Bytes of the pages that were given back and are kept.
    fn kept(&self) -> u64 {
        self.chunks.iter().map(|(_, ranges)| ranges.retained()).sum()
    }

    /// Keeps less if the program has not taken all of it for long.
    fn age(&mut self) {
        if self.retention.ages() {
            let kept = self.kept();
            self.retention.age(process::seconds(), kept);
        }
    }

    /// Takes the pages of the longest run that is kept in the chunk that keeps the most.
    fn take_longest(&mut self) -> Option<(&'static Chunk, u64, u64)> {
        let most = self.chunks.iter_mut().max_by_key(|(_, ranges)| ranges.retained());
        let (chunk, ranges) = most?;
        let (offset, bytes) = ranges.take_retained()?;
        Some((*chunk, offset, bytes))
    }
}

fn new_chunk(bytes: u64) -> Result<&'static Chunk> {
    limits::least(); // so that no request has to ask later
    let segment = Segment::create(bytes)?;
    let name = segment.name();
    let mapping = segment.map_aligned(CHUNK_ALIGNMENT as usize)?;
    Ok(Box::leak(Box::new(Chunk { segment, mapping, name })))
}

mod fork;
pub use fork::is_inherited;

#[cfg(test)]
mod tests;
