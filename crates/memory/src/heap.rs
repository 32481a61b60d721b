//! The memory that this process allocates: ranges of a few large chunks. Each chunk is a sparse
//! segment that other processes find by its name and map as a whole. A chunk is twice as large as
//! the one before, so that the number of descriptors does not grow with that of allocations. It is
//! never unmapped: memory of MPI_Alloc_mem can be used until the process ends (MPI-4.1 §9.2). Not
//! for memory of other processes (`maps`).
//!
//! Pages are taken from the system when they are touched, as those of malloc are. Memory that is
//! given back keeps its pages up to a bound ([`kept_max`]), because pages are most of the cost of a
//! large request. Only where the kernel would refuse a page by a signal
//! ([`memory_limits::are_strict`]), all allocated memory has pages from the start.
//!
//! A child of fork(2) shares the chunks with its parent, except for memory of MPI_Alloc_mem
//! ([`fork_copies`]). The heap of the child does not use them: the child allocates from chunks of
//! its own, and memory that it gives back stays as it is.

use super::ranges::{GRANULE, RangeState, Ranges};
use super::retention::kept_max;
use crate::error::{Error, Result};
use crate::messages;
use crate::number::Number;
use crate::sys::memory_limits;
use crate::sys::page_bytes;
use crate::sys::process;
use crate::sys::segment::{Mapping, Name, Segment};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

/// The alignment of chunks: a huge page.
const CHUNK_ALIGNMENT: u64 = 2 << 20;
/// The largest alignment that a request may ask for.
const ALIGNMENT_MAX: u64 = 1 << 40;
/// The size of the first chunk, at least.
const CHUNK_MIN: u64 = 64 << 20;
/// The size of the range from which small requests are cut.
const BATCH: u64 = 64 << 10;
/// The size from which on a request checks whether the node can ever have the memory.
const LARGE: u64 = 16 << 20;

/// A segment of this process, mapped. It lives as long as the process.
struct Chunk {
    segment: Segment,
    mapping: Mapping,
    name: Name,
}

impl Chunk {
    fn bytes(&self) -> u64 {
        self.mapping.bytes().to_u64()
    }

    /// Returns the offset of a range of addresses, if all of it is in this chunk.
    fn offset_of(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.checked_sub(self.mapping.base().addr().to_u64())?;
        (offset.checked_add(bytes)? <= self.bytes()).then_some(offset)
    }

    fn back(&self, offset: u64, bytes: u64) -> Result<()> {
        self.segment.back(&self.mapping, offset, bytes)
    }

    fn give_back(&self, offset: u64, bytes: u64) -> Result<()> {
        self.segment.give_back(&self.mapping, offset, bytes)
    }
}

/// The place at which other processes find a range. A name of no bytes: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct HeapPlace {
    /// the segment
    pub name: Name,
    /// the offset of the first byte in it
    pub offset: u64,
}

impl HeapPlace {
    /// Returns the segment. Fails if it has less than `bytes` bytes from the offset on: no process
    /// has published such a place, but it may have damaged its memory.
    pub fn segment_of(&self, bytes: u64) -> Result<&Name> {
        let end = self.offset.checked_add(bytes).filter(|end| *end <= self.name.bytes);
        end.map(|_| &self.name).ok_or(DAMAGED)
    }
}

/// The place of a range that another process has published is outside of its segment.
const DAMAGED: Error = Error::Wrong(&messages::DAMAGED_LOCATION);

/// An allocated range of memory, which is given back on drop.
pub struct HeapRange {
    heap: &'static Heap,
    /// process that took it
    pid: i32,
    chunk: &'static Chunk,
    offset: u64,
    /// bytes that were asked for
    bytes: u64,
    dirty: bool,
    /// the offset and the bytes of whole huge pages that go to the system when it is given back
    emptied: Option<(u64, u64)>,
}

impl HeapRange {
    /// Returns its address.
    pub fn base(&self) -> *mut u8 {
        self.chunk.mapping.base().wrapping_add(self.offset.to_usize())
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the place at which other processes find it.
    pub fn place(&self) -> HeapPlace {
        HeapPlace { name: self.chunk.name, offset: self.offset }
    }

    /// Whether its bytes may be other than zero.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Whether any of its pages has memory or swap space behind it; `None` if that is not known.
    pub fn has_data(&self) -> Option<bool> {
        let (first, bytes) = self.pages();
        self.chunk.segment.has_data(first, bytes)
    }

    /// Returns the descriptor of its segment, if the program has not closed it.
    pub fn descriptor(&self) -> Option<i32> {
        self.chunk.segment.is_open().then_some(self.chunk.name.fd)
    }

    /// Backs it with memory, so that touching it later cannot fail.
    pub fn back(&self) -> Result<()> {
        let (first, bytes) = self.pages();
        self.chunk.back(first, bytes)
    }

    /// Returns the offset and the bytes of its pages.
    fn pages(&self) -> (u64, u64) {
        let first = self.offset / page_bytes() * page_bytes();
        (first, (self.offset + self.bytes).next_multiple_of(page_bytes()) - first)
    }
}

impl Drop for HeapRange {
    fn drop(&mut self) {
        if self.pid == process::id() {
            let (offset, bytes) = self.emptied.unwrap_or((self.offset, whole(self.bytes)));
            if self.emptied.is_some() && self.chunk.give_back(offset, bytes).is_ok() {
                return self.heap.state().give(self.chunk, offset, bytes, RangeState::Fresh);
            }
            self.heap.give_back(self.chunk, offset, bytes);
        }
    }
}

/// The state of a heap.
struct HeapState {
    /// the process that the state belongs to; 0: no process has used it
    pid: i32,
    chunks: Vec<(&'static Chunk, Ranges)>,
    /// the memory that `allocate` returned, by address
    allocated: BTreeMap<usize, HeapRange>,
    /// chunks of the process that this one was forked from
    inherited: Vec<&'static Chunk>,
    /// the number of ranks that share the memory of the node, as far as is known
    ranks: u32,
}

/// A heap. The process has one; tests make their own.
struct Heap {
    state: Mutex<HeapState>,
    /// whether all allocated memory must have pages from the start
    backs: fn() -> bool,
}

static HEAP: Heap = Heap::new(memory_limits::are_strict);

/// Allocates `bytes` bytes whose address is a multiple of `alignment` (a power of two). Fails with
/// `NoMemory` if the node can never have so much.
pub fn take(bytes: u64, alignment: u64) -> Result<HeapRange> {
    HEAP.take(bytes, alignment)
}

/// Allocates whole pages without memory behind them, to be mapped at `address` as well: both
/// addresses are the same modulo the size of a huge page. No other range lies in the huge pages of
/// the chunk that they are parts of. When they are given back, their memory goes to the system.
pub fn take_empty(bytes: u64, address: u64) -> Result<HeapRange> {
    HEAP.take_empty(bytes, address)
}

/// Allocates memory until `release`, for MPI_Alloc_mem. Zero bytes have an address, too.
pub fn allocate(bytes: u64, alignment: u64) -> Result<*mut u8> {
    fork_copies::watch();
    HEAP.allocate(bytes, alignment)
}

/// Gives back memory of `allocate`. Returns false if `base` is no such memory, or not any more.
pub fn release(base: *mut u8) -> bool {
    HEAP.release(base)
}

/// Returns the address and the bytes of the memory of `allocate` that holds a range of addresses.
pub fn allocation(address: u64, bytes: u64) -> Option<(u64, u64)> {
    HEAP.allocation(address, bytes)
}

/// Returns the place at which other processes find a range of addresses, if all of it is in one
/// chunk.
pub fn find(address: u64, bytes: u64) -> Option<HeapPlace> {
    HEAP.find(address, bytes)
}

/// Records that `ranks` ranks of a communicator share the memory of the node.
pub fn shared_by(ranks: u32) {
    let mut state = HEAP.state();
    state.ranks = state.ranks.max(ranks);
}

/// Returns the bytes that a request occupies, in whole granules. At least one granule, so that
/// every request has its own address.
fn whole(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(GRANULE)
}

impl Heap {
    const fn new(backs: fn() -> bool) -> Heap {
        let state = HeapState {
            pid: 0,
            chunks: Vec::new(),
            allocated: BTreeMap::new(),
            inherited: Vec::new(),
            ranks: 0,
        };
        Heap { state: Mutex::new(state), backs }
    }

    /// Returns the state for this process.
    fn state(&self) -> MutexGuard<'_, HeapState> {
        let mut state = self.state.lock();
        let pid = process::id();
        if state.pid != pid {
            let chunks = std::mem::take(&mut state.chunks);
            state.inherited.extend(chunks.iter().map(|(chunk, _)| *chunk));
            state.allocated.clear(); // leases of another process give nothing back
            state.pid = pid;
        }
        state
    }

    fn take(&'static self, bytes: u64, alignment: u64) -> Result<HeapRange> {
        self.take_from(&mut self.state(), bytes, alignment)
    }

    fn take_from(
        &'static self,
        state: &mut MutexGuard<'_, HeapState>,
        bytes: u64,
        alignment: u64,
    ) -> Result<HeapRange> {
        assert!(alignment.is_power_of_two());
        if bytes > i64::MAX as u64 || alignment > ALIGNMENT_MAX {
            return Err(Error::NoMemory { bytes });
        }
        let pid = state.pid;
        let emptied = None;
        let lease = |chunk, offset, dirty| HeapRange {
            heap: self,
            pid,
            chunk,
            offset,
            bytes,
            dirty,
            emptied,
        };
        if let Some((chunk, offset)) = state.take(whole(bytes), alignment, RangeState::Used) {
            return Ok(lease(chunk, offset, true));
        }
        let (chunk, offset, taken) = state.take_fresh(whole(bytes), alignment)?;
        // Backing many pages takes long, so the lock is released meanwhile.
        let back = || if (self.backs)() { chunk.back(offset, taken) } else { Ok(()) };
        if MutexGuard::unlocked(state, back).is_err() {
            // Some pages may have memory. If it cannot be given back, the range is never used
            // again.
            if chunk.give_back(offset, taken).is_ok() {
                state.give(chunk, offset, taken, RangeState::Fresh);
            }
            return Err(Error::NoMemory { bytes });
        }
        let end = offset + whole(bytes);
        state.give(chunk, end, offset + taken - end, RangeState::Used);
        Ok(lease(chunk, offset, false))
    }

    fn take_empty(&'static self, bytes: u64, address: u64) -> Result<HeapRange> {
        assert!(bytes > 0 && (bytes | address).is_multiple_of(page_bytes()));
        let ahead = address % CHUNK_ALIGNMENT;
        let all = (ahead + bytes).next_multiple_of(CHUNK_ALIGNMENT);
        let mut state = self.state();
        let (chunk, first) = state.take_or_add(all, CHUNK_ALIGNMENT)?;
        let (pid, offset, emptied) = (state.pid, first + ahead, Some((first, all)));
        Ok(HeapRange { heap: self, pid, chunk, offset, bytes, dirty: false, emptied })
    }

    fn allocate(&'static self, bytes: u64, alignment: u64) -> Result<*mut u8> {
        let mut state = self.state();
        let lease = self.take_from(&mut state, bytes, alignment)?;
        let base = lease.base();
        state.allocated.insert(base.addr(), lease);
        Ok(base)
    }

    fn release(&self, base: *mut u8) -> bool {
        let mut state = self.state();
        let lease = state.allocated.remove(&base.addr());
        let inherited = |chunk: &&Chunk| chunk.offset_of(base.addr().to_u64(), 1).is_some();
        let is_inherited = state.inherited.iter().any(inherited);
        drop(state); // dropping the lease takes the lock
        lease.is_some() || is_inherited
    }

    fn allocation(&self, address: u64, bytes: u64) -> Option<(u64, u64)> {
        let state = self.state();
        let (base, lease) = state.allocated.range(..=address.to_usize()).next_back()?;
        let end = (*base).to_u64().checked_add(lease.bytes())?;
        (address.checked_add(bytes)? <= end).then_some(((*base).to_u64(), lease.bytes()))
    }

    fn find(&self, address: u64, bytes: u64) -> Option<HeapPlace> {
        self.state().chunks.iter().find_map(|(chunk, _)| {
            let offset = chunk.offset_of(address, bytes)?;
            Some(HeapPlace { name: chunk.name, offset })
        })
    }

    /// Frees a range, then gives memory to the system until the heap keeps no more than the bound,
    /// the longest runs first. That takes long, so the lock is released meanwhile; no request can
    /// get these pages then.
    fn give_back(&self, chunk: &'static Chunk, offset: u64, bytes: u64) {
        let mut state = self.state();
        state.give(chunk, offset, bytes, RangeState::Used);
        let bound = state.bound();
        while state.kept() > bound {
            let Some((chunk, offset, bytes)) = state.take_longest() else { return };
            let given = MutexGuard::unlocked(&mut state, || chunk.give_back(offset, bytes));
            if given.is_err() {
                return state.give(chunk, offset, bytes, RangeState::Used);
            }
            state.give(chunk, offset, bytes, RangeState::Fresh);
        }
    }
}

impl HeapState {
    /// Takes a range of that state from any chunk.
    fn take(
        &mut self,
        bytes: u64,
        alignment: u64,
        state: RangeState,
    ) -> Option<(&'static Chunk, u64)> {
        self.chunks
            .iter_mut()
            .find_map(|(chunk, ranges)| Some((*chunk, ranges.take(bytes, alignment, state)?)))
    }

    /// Frees a range.
    fn give(&mut self, chunk: &'static Chunk, offset: u64, bytes: u64, state: RangeState) {
        let ours = self.chunks.iter_mut().find(|(other, _)| std::ptr::eq(*other, chunk));
        if let Some((_, ranges)) = ours {
            ranges.give(offset, bytes, state);
        }
    }

    /// Takes fresh pages for a request, from a new chunk if necessary. Returns the chunk, the
    /// offset and the bytes, which are more than requested if the request is small.
    fn take_fresh(&mut self, bytes: u64, alignment: u64) -> Result<(&'static Chunk, u64, u64)> {
        let bytes = bytes.next_multiple_of(page_bytes());
        if bytes >= LARGE && !memory_limits::fits(bytes) {
            return Err(memory_limits::too_much(bytes));
        }
        for bytes in [bytes.max(BATCH), bytes] {
            if let Some((chunk, offset)) = self.take(bytes, alignment, RangeState::Fresh) {
                return Ok((chunk, offset, bytes));
            }
        }
        let bytes = bytes.max(BATCH);
        let (chunk, offset) = self.take_or_add(bytes, alignment)?;
        Ok((chunk, offset, bytes))
    }

    /// Takes fresh pages, from a new chunk if necessary.
    fn take_or_add(&mut self, bytes: u64, alignment: u64) -> Result<(&'static Chunk, u64)> {
        if let Some(taken) = self.take(bytes, alignment, RangeState::Fresh) {
            return Ok(taken);
        }
        // The alignment of a chunk is less than that.
        let skipped = if alignment > CHUNK_ALIGNMENT { alignment } else { 0 };
        let (chunk, ranges) = self.add_chunk(bytes + skipped)?;
        let offset = ranges.take(bytes, alignment, RangeState::Fresh);
        Ok((*chunk, offset.expect("the chunk was made for it")))
    }

    /// Makes a chunk for a request of `bytes` bytes.
    fn add_chunk(&mut self, bytes: u64) -> Result<&mut (&'static Chunk, Ranges)> {
        let least = bytes.next_multiple_of(CHUNK_ALIGNMENT);
        let last = self.chunks.last().map_or(CHUNK_MIN / 2, |(chunk, _)| chunk.bytes());
        // A limit of the process (RLIMIT_AS, RLIMIT_FSIZE) may allow no more than necessary.
        let chunk = new_chunk(least.max(2 * last)).or_else(|_| new_chunk(least))?;
        let origin = chunk.mapping.base().addr().to_u64();
        self.chunks.push((chunk, Ranges::new(origin, chunk.bytes())));
        Ok(self.chunks.last_mut().expect("it was just pushed"))
    }

    /// Returns the bytes of pages that were given back and are kept.
    fn kept(&self) -> u64 {
        self.chunks.iter().map(|(_, ranges)| ranges.retained()).sum()
    }

    /// Returns how many of them are kept at most.
    fn bound(&self) -> u64 {
        let ranks = if self.ranks > 0 { self.ranks } else { process::cores().to_u32() };
        kept_max(memory_limits::least(), ranks)
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
    memory_limits::least(); // so that no request has to ask later
    let segment = Segment::create(bytes)?;
    let name = segment.name();
    let mapping = segment.map_aligned(CHUNK_ALIGNMENT.to_usize())?;
    Ok(Box::leak(Box::new(Chunk { segment, mapping, name })))
}

mod fork_copies;
pub use fork_copies::{ForkHooks, around_fork, is_inherited, set_fork_hooks};

#[cfg(test)]
mod tests;
