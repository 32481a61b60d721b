//! The arena of a communicator: control memory that all its processes on the node map, made at the
//! first window and kept as an attribute of the communicator (and by the windows, which may outlive
//! it). A window takes a slot of it: a control block per rank.
//!
//! Layout of the first segment: process records, exchange records, then a chunk of slots. More
//! chunks come as segments of their own, each twice as large. A slot is one block per rank:
//! a [`Descriptor`], then the control words of `epoch::layout`. Slot 0 is the arena's own, for the
//! barriers of window creation.

use super::blocks::{Blocks, Descriptor};
use crate::epoch::{fence, layout};
use crate::error::{Error, Result};
use crate::fabric::shm::words::CpuWords;
use crate::mpi::comm::{Comm, Group};
use crate::mpi::{Handle, Host};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sys::process;
use crate::sys::segment::{Mapping, Name, PAGE, Segment};
use core::ffi::{c_int, c_void};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use super::idle::NodeIdle;

/// What the node knows of a process.
///
/// | `state` | meaning                                                     |
/// |---------|-------------------------------------------------------------|
/// | 0       | the process takes part                                      |
/// | 1       | it has called MPI_Finalize: that it is gone is no failure   |
#[repr(C, align(64))]
pub struct Process {
    /// its process id
    pub pid: AtomicU32,
    /// 0 or 1, see above
    pub state: AtomicU32,
    /// what it sleeps on, see `fabric::shm::words`
    pub doorbell: AtomicU32,
}

/// What ranks tell each other while a window is made; two of them per rank, used in turn.
#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub struct Record {
    /// bytes that the rank wants
    pub bytes: u64,
    /// its displacement unit
    pub disp_unit: u64,
    /// 1 if its part must follow the one of the rank before it without a gap
    pub contiguous: u64,
    /// see `exchange`, as for the next two
    pub status: u64,
    /// (from rank 0)
    pub offered: u64,
    /// whether the rank has mapped it all
    pub mapped: u64,
    /// the slot (from rank 0)
    pub slot: u64,
    /// the data segment (from rank 0)
    pub data: Name,
    /// a further chunk of slots (from rank 0); no bytes: none is needed
    pub chunk: Name,
}

/// Slots in the first chunk.
const FIRST_SLOTS: u32 = 16;

/// The arena.
pub struct Arena {
    /// internal duplicate of the user's communicator
    pub comm: Comm,
    /// its group
    pub group: Group,
    /// this process
    pub rank: u32,
    /// all of them
    pub size: u32,
    stride: usize,
    first: Mapping,
    chunks: Mutex<Vec<Mapping>>,
    slots: Mutex<Slots>,
    /// slots of the windows of this process
    occupied: Mutex<BTreeSet<u32>>,
    barriers: AtomicU64,
    turns: AtomicU64,
}

/// The slots that rank 0 gives out.
struct Slots {
    free: Vec<u32>,
    next: u32,
}

/// Bytes of the process records and exchange records.
fn records_bytes(size: u32) -> usize {
    size as usize * (size_of::<Process>() + 2 * size_of::<Record>())
}

/// Bytes of a rank's block.
fn block_bytes(size: u32) -> usize {
    let words = layout::words_per_rank(size) as usize * size_of::<u64>();
    (size_of::<Descriptor>() + words).next_multiple_of(64)
}

/// The chunk that a slot is in, and its place there.
fn place(slot: u32) -> (u32, u32) {
    let chunk = (slot / FIRST_SLOTS + 1).ilog2();
    (chunk, slot - FIRST_SLOTS * ((1 << chunk) - 1))
}

impl Arena {
    /// The arena of a communicator, made if need be. `None`: its processes share no memory.
    /// Collective, the first time.
    pub fn of(host: &'static Host, comm: Comm) -> Result<Option<Arc<Arena>>> {
        let keyval = keyval(host)?;
        let (mut cached, mut found): (*mut Cached, c_int) = (core::ptr::null_mut(), 0);
        let value = (&raw mut cached).cast();
        // SAFETY: out parameters of ours; the attribute is the pointer that was set below.
        let code = unsafe { (host.call.comm_get_attr)(comm.0, keyval, value, &mut found) };
        crate::mpi::comm::check(code)?;
        if found != 0 {
            // SAFETY: set below, and dropped by `delete` only, together with the attribute.
            return Ok(unsafe { &*cached }.0.clone());
        }
        let arena = Arena::make(host, comm)?;
        let cached = Box::into_raw(Box::new(Cached(arena.clone())));
        // SAFETY: from here on the attribute owns the box.
        let code = unsafe { (host.call.comm_set_attr)(comm.0, keyval, cached.cast()) };
        crate::mpi::comm::check(code)?;
        Ok(arena)
    }

    fn make(host: &'static Host, user: Comm) -> Result<Option<Arc<Arena>>> {
        let comm = user.duplicate(host)?;
        let (rank, size) = (comm.rank(host)?, comm.size(host)?);
        let stride = block_bytes(size);
        let slots = stride * size as usize * FIRST_SLOTS as usize;
        let bytes = (records_bytes(size) + slots).next_multiple_of(PAGE as usize) as u64;
        let own = (rank == 0).then(|| Segment::create(bytes)).and_then(Result::ok);
        let mut name = [0; 5];
        if let Some(segment) = &own
            && segment.reserve(0, bytes).is_ok()
            && let Ok(found) = segment.name()
        {
            name = encode(&found);
        }
        comm.broadcast(host, &mut name)?;
        let name = decode(&name);
        let first = (name.bytes == bytes)
            .then(|| Segment::open(&name).and_then(|segment| segment.map()))
            .and_then(Result::ok);
        if !comm.all(host, first.is_some())? {
            comm.free(host);
            return Ok(None);
        }
        let Some(first) = first else { return Ok(None) };
        let group = comm.group(host)?;
        let slots = Mutex::new(Slots { free: Vec::new(), next: 1 });
        let (chunks, occupied) = (Mutex::new(Vec::new()), Mutex::default());
        let (barriers, turns) = (AtomicU64::new(0), AtomicU64::new(0));
        let arena = Arena {
            comm,
            group,
            rank,
            size,
            stride,
            first,
            chunks,
            slots,
            occupied,
            barriers,
            turns,
        };
        arena.process(rank).pid.store(process::id() as u32, Ordering::Release);
        comm.all(host, true)?;
        // What was opened under that name might be another file on another node. If it is one and
        // the same for all, then all have left their process numbers in it.
        let known = |rank| arena.process(rank).pid.load(Ordering::Acquire) != 0;
        if !comm.all(host, (0..size).all(known))? {
            return Ok(None);
        }
        let arena = Arc::new(arena);
        departures::note(&arena);
        Ok(Some(arena))
    }

    /// What the node knows of a rank's process.
    pub fn process(&self, rank: u32) -> &Process {
        assert!(rank < self.size);
        // SAFETY: the first segment starts with `size` process records; it is zeroed memory that
        // lives as long as the arena, and its fields are atomics.
        unsafe { &*self.first.base().cast::<Process>().add(rank as usize) }
    }

    /// Where a rank's exchange record for the creation number `turn` is.
    pub fn record(&self, turn: u64, rank: u32) -> *mut Record {
        assert!(rank < self.size);
        let processes = self.size as usize * size_of::<Process>();
        let index = 2 * rank as usize + (turn % 2) as usize;
        // SAFETY: inside of the first segment, see `records_bytes`.
        unsafe { self.first.base().add(processes).cast::<Record>().add(index) }
    }

    /// The control blocks of a slot whose chunk is mapped.
    pub fn blocks(self: &Arc<Arena>, slot: u32) -> Blocks {
        let (chunk, index) = place(slot);
        let base = match chunk {
            // SAFETY: the first chunk lies behind the records of the first segment.
            0 => unsafe { self.first.base().add(records_bytes(self.size)) },
            _ => self.chunks.lock()[chunk as usize - 1].base(),
        };
        let slot_bytes = self.stride * self.size as usize;
        // SAFETY: a chunk has room for all its slots.
        let base = unsafe { base.add(slot_bytes * index as usize) };
        Blocks::new(base, self.stride, self.clone())
    }

    /// The words of a slot, as the road within the node gives them.
    pub fn words(self: &Arc<Arena>, slot: u32) -> CpuWords<Blocks, NodeIdle> {
        CpuWords::new(self.blocks(slot), NodeIdle::new(self.clone()))
    }

    /// Waits until all ranks are here.
    pub fn barrier(self: &Arc<Arena>) -> Result<()> {
        // Relaxed: only the threads of one collective call at a time come here.
        let turn = self.barriers.fetch_add(1, Ordering::Relaxed) + 1;
        fence::barrier(&self.words(0), turn)
    }

    /// The number of the next window's creation.
    pub fn next_turn(&self) -> u64 {
        // Relaxed: windows of one communicator are made one after the other.
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// A free slot, and a new chunk of slots if there was none left in the mapped ones. Rank 0
    /// only.
    pub fn take_slot(&self) -> Result<(u32, Option<Segment>)> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.free.pop() {
            return Ok((slot, None));
        }
        let slot = slots.next;
        let (chunk, _) = place(slot);
        let segment = match self.chunks.lock().len() as u32 >= chunk {
            true => None,
            false => {
                let bytes = self.chunk_bytes(chunk);
                let segment = Segment::create(bytes)?;
                segment.reserve(0, bytes)?;
                Some(segment)
            }
        };
        slots.next += 1;
        Ok((slot, segment))
    }

    /// Gives a slot back. Rank 0 only, when all ranks have left it.
    pub fn free_slot(&self, slot: u32) {
        self.slots.lock().free.push(slot);
    }

    /// Notes that a window of this process uses a slot from now on.
    pub fn enter(&self, slot: u32) {
        self.occupied.lock().insert(slot);
    }

    /// Notes that the window is gone.
    pub fn leave(&self, slot: u32) {
        self.occupied.lock().remove(&slot);
    }

    /// Waits until no window of this process uses a slot that rank 0 has given to a new one. Rank 0
    /// does so when all ranks have come to MPI_Win_free; a thread of this one may still be in it,
    /// and looks at the words of the slot.
    pub fn wait_until_left(&self, slot: u32) -> Result<()> {
        while self.occupied.lock().contains(&slot) {
            self.dead()?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Undoes `take_slot` (on rank 0) and `map_chunk` where a window was not made after all.
    pub fn give_up(&self, slot: u32, new_chunk: bool) {
        let (chunk, _) = place(slot);
        if new_chunk {
            self.chunks.lock().truncate(chunk as usize - 1);
        }
        let mut slots = self.slots.lock();
        match (self.rank, new_chunk) {
            (0, true) => slots.next = slot,
            (0, false) => slots.free.push(slot),
            _ => {}
        }
    }

    /// Maps a further chunk.
    pub fn map_chunk(&self, name: &Name) -> Result<()> {
        let mapping = Segment::open(name)?.map()?;
        self.chunks.lock().push(mapping);
        Ok(())
    }

    fn chunk_bytes(&self, chunk: u32) -> u64 {
        let slots = (FIRST_SLOTS << chunk) as u64;
        (slots * self.size as u64 * self.stride as u64).next_multiple_of(PAGE)
    }

    /// The process that has died, if one has that still took part.
    pub fn dead(&self) -> Result<()> {
        for rank in 0..self.size {
            let process = self.process(rank);
            let pid = process.pid.load(Ordering::Relaxed) as i32;
            if process.state.load(Ordering::Relaxed) == 0 && !process::alive(pid) {
                return Err(Error::Died { rank, pid });
            }
        }
        Ok(())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if !departures::begun() {
            let host = Host::get();
            self.group.free(host);
            self.comm.free(host);
        }
    }
}

/// What the attribute of a communicator points to.
struct Cached(Option<Arc<Arena>>);

fn keyval(host: &Host) -> Result<c_int> {
    static KEYVAL: OnceLock<c_int> = OnceLock::new();
    unsafe extern "C" fn delete(_: Handle, _: c_int, value: *mut c_void, _: *mut c_void) -> c_int {
        // SAFETY: the attribute's value is the box that `Arena::of` leaked.
        drop(unsafe { Box::from_raw(value.cast::<Cached>()) });
        0
    }
    if let Some(keyval) = KEYVAL.get() {
        return Ok(*keyval);
    }
    let new = host.comm_keyval(delete)?;
    Ok(*KEYVAL.get_or_init(|| new))
}

/// Processes that leave in good order: MPI_Finalize deletes the attributes of MPI_COMM_SELF first
/// (MPI-4.1 §11.2.4), which tells the node that this process may disappear from now on.
mod departures {
    use super::*;
    use std::sync::Weak;

    static BEGUN: AtomicBool = AtomicBool::new(false);
    static ARENAS: Mutex<Vec<Weak<Arena>>> = Mutex::new(Vec::new());

    /// Whether MPI_Finalize has begun.
    pub fn begun() -> bool {
        BEGUN.load(Ordering::Relaxed)
    }

    /// Makes sure that the ranks of `arena` learn when this process leaves.
    pub fn note(arena: &Arc<Arena>) {
        let mut arenas = ARENAS.lock();
        arenas.retain(|known| known.strong_count() > 0);
        arenas.push(Arc::downgrade(arena));
        drop(arenas);
        watch();
    }

    fn watch() {
        static ONCE: OnceLock<()> = OnceLock::new();
        let host = Host::get();
        if host.initialized() {
            ONCE.get_or_init(|| {
                if let Ok(keyval) = host.comm_keyval(leave) {
                    let (self_, value) = (host.constants.comm_self, core::ptr::null_mut());
                    // SAFETY: a valid communicator and keyval; the value is not used.
                    unsafe { (host.call.comm_set_attr)(self_, keyval, value) };
                }
            });
        }
    }

    unsafe extern "C" fn leave(_: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
        BEGUN.store(true, Ordering::Relaxed);
        for arena in ARENAS.lock().iter().filter_map(Weak::upgrade) {
            arena.process(arena.rank).state.store(1, Ordering::Release);
        }
        0
    }
}

fn encode(name: &Name) -> [u64; 5] {
    [name.pid as u64, name.fd as u64, name.device, name.inode, name.bytes]
}

fn decode(words: &[u64; 5]) -> Name {
    let [pid, fd, device, inode, bytes] = *words;
    Name { pid: pid as i32, fd: fd as i32, device, inode, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_its_own_place() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(15), (0, 15));
        assert_eq!(place(16), (1, 0));
        assert_eq!(place(47), (1, 31));
        assert_eq!(place(48), (2, 0));
    }
}
