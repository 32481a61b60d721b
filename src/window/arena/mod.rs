//! The arena: control memory that processes of one node map. It is made for the first window of a
//! communicator ([`super::ground`]) and kept by its windows, which may outlive the communicator. A
//! window takes a slot of it: a control block per rank, which is a [`Descriptor`] and then
//! the control words of `epoch::layout`. Slot 0 is the arena's own, for the barriers of window
//! creation.
//!
//! [`Descriptor`]: super::blocks::Descriptor

pub mod departures;
mod lives;
pub mod losses;
mod records;
mod slots;

pub use records::{Process, Record};
pub use slots::Announcement;

use super::blocks::{Blocks, Descriptor};
use super::idle::{Collective, NodeIdle};
use super::report::Why;
use super::wide::{Wide, said};
use crate::epoch::{fence, layout};
use crate::error::{Error, Result};
use crate::fabric::cma;
use crate::fabric::shm::words::{CHECK_NS, CpuWords};
use crate::memory::heap;
use crate::mpi::Host;
use crate::mpi::comm::{Comm, Group};
use crate::sync::{AtomicU64, Ordering};
use crate::sys::life::{Mark, now_ns};
use crate::sys::segment::{Mapping, Name, PAGE, Segment};
use lives::Lives;
use slots::{FIRST_SLOTS, Slots};
use std::sync::{Arc, OnceLock, Weak};

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
    /// the slots of its windows
    pub slots: Slots,
    /// bytes of each rank's block
    pub stride: usize,
    /// how many of them, ahead of the descriptor, are words for ranks of other nodes
    far_bytes: usize,
    first: Arc<Mapping>,
    lives: Arc<Lives>,
    /// when a process that asks again and again looked last for who is dead; 0: it never did
    asked: AtomicU64,
    barriers: AtomicU64,
    turns: AtomicU64,
    /// the trouble counters as this rank last saw them
    seen: [AtomicU64; 4],
    /// whether this process may look into the memory of all the others
    permitted: OnceLock<bool>,
    /// what it is a part of, if its ranks are those of one node of several
    pub wide: OnceLock<Weak<Wide>>,
}

/// Bytes of a rank's block, without words for ranks of other nodes.
fn block_bytes(size: u32) -> usize {
    let words = layout::words_per_rank(size) as usize * size_of::<u64>();
    (size_of::<Descriptor>() + words).next_multiple_of(64)
}

impl Arena {
    /// The arena of the processes of `user`; each of its blocks has `far_bytes` bytes (whole cache
    /// lines) of words for ranks of other nodes; or why there is none. Collective.
    pub fn make(
        host: &'static Host,
        user: Comm,
        far_bytes: usize,
    ) -> Result<core::result::Result<Arc<Arena>, Why>> {
        let comm = user.duplicate(host)?;
        let (rank, size) = (comm.rank(host)?, comm.size(host)?);
        let stride = block_bytes(size) + far_bytes;
        let slot_bytes = stride * size as usize;
        let bytes = records::bytes(size) + slot_bytes * FIRST_SLOTS as usize;
        let bytes = bytes.next_multiple_of(PAGE as usize) as u64;
        let (first, _open) = first_segment(host, comm, rank, bytes)?;
        let first = first.map_err(|error| Why::no_segment(&error));
        let first = match said::none_has_reasons(host, comm, first)? {
            Ok(first) => Arc::new(first),
            Err(why) => {
                comm.free(host);
                return Ok(Err(why));
            }
        };
        let arena = Arena {
            comm,
            group: comm.group(host)?,
            rank,
            size,
            slots: Slots::new(slot_bytes as u64),
            stride,
            far_bytes,
            lives: Arc::new(Lives::new(first.clone(), rank, size)),
            first,
            asked: AtomicU64::new(0),
            barriers: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            seen: [const { AtomicU64::new(0) }; 4],
            permitted: OnceLock::new(),
            wide: OnceLock::new(),
        };
        arena.sign_in();
        comm.all(host, true)?;
        // What was opened under that name might be another file on another node. If it is one and
        // the same for all, then all have left their process numbers in it.
        let known = |rank| arena.process(rank).pid.load(Ordering::Acquire) != 0;
        if !comm.all(host, (0..size).all(known))? {
            return Ok(Err(Why::NoRoad));
        }
        let arena = Arc::new(arena);
        departures::note(&arena);
        heap::shared_by(size);
        Ok(Ok(arena))
    }

    /// Leaves this process's number, and what proves that a process of that number is this one.
    fn sign_in(&self) {
        let own = self.process(self.rank);
        let mark = Mark::own();
        own.start.store(mark.start, Ordering::Relaxed);
        own.cookie.store(mark.cookie, Ordering::Relaxed);
        own.cookie_address.store(mark.cookie_address, Ordering::Relaxed);
        if self.rank == 0 {
            // No process makes two arenas in one nanosecond, and no two processes have one number.
            let id = (mark.pid as u64) << 40 ^ now_ns();
            // Relaxed: the Release below orders it.
            records::trouble(&self.first).id.store(id, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire of `make`.
        own.pid.store(mark.pid as u32, Ordering::Release);
    }

    /// What the node knows of a rank's process.
    #[inline]
    pub fn process(&self, rank: u32) -> &Process {
        assert!(rank < self.size);
        records::process(&self.first, rank)
    }

    /// Where a rank's exchange record for the creation number `turn` is.
    pub fn record(&self, turn: u64, rank: u32) -> *mut Record {
        assert!(rank < self.size);
        records::record(&self.first, self.size, turn, rank)
    }

    /// A rank's process as the road to its memory knows it.
    #[inline]
    pub fn memory_of(&self, rank: u32) -> cma::Process<'_> {
        cma::Process { rank, life: self.lives.of(rank) }
    }

    /// Asks whether this process may look into the memory of all the others. Collective the first
    /// time: each must have allowed it before any tries.
    pub fn ask_permission(self: &Arc<Arena>, call: &'static str) -> Result<()> {
        if self.permitted.get().is_some() {
            return Ok(());
        }
        if self.size > 1 {
            cma::allow((0..self.size).map(|rank| self.memory_of(rank).life.mark().pid));
        }
        self.barrier(call)?;
        let mut others = (0..self.size).filter(|rank| *rank != self.rank);
        let _ = self.permitted.set(others.all(|rank| self.memory_of(rank).shows_cookie()));
        Ok(())
    }

    /// Whether this process may look into the memory of all the others, as far as it was asked.
    pub fn is_permitted(&self) -> bool {
        self.permitted.get() == Some(&true)
    }

    /// Tells all ranks that this one is in trouble with step `step` of creation number `turn`.
    pub fn cry(&self, turn: u64, step: usize) {
        // Relaxed: the barrier that follows orders it.
        records::trouble(&self.first).cries[counter(turn, step)].fetch_add(1, Ordering::Relaxed);
    }

    /// Whether any rank has cried. Once per step, behind the barrier that ends it.
    pub fn hears_trouble(&self, turn: u64, step: usize) -> bool {
        let counter = counter(turn, step);
        // Relaxed: as in `cry`; `seen` is this rank's own.
        let now = records::trouble(&self.first).cries[counter].load(Ordering::Relaxed);
        self.seen[counter].swap(now, Ordering::Relaxed) != now
    }

    /// The control blocks of a slot whose chunk is mapped.
    pub fn blocks(self: &Arc<Arena>, slot: u32) -> Blocks {
        let base = match slots::place(slot) {
            (0, index) => {
                let slot_bytes = self.stride * self.size as usize;
                let offset = records::bytes(self.size) + slot_bytes * index as usize;
                // SAFETY: the first chunk lies behind the records of the first segment.
                unsafe { self.first.base().add(offset) }
            }
            _ => self.slots.base(slot),
        };
        Blocks::new(base, self.stride, self.far_bytes, self.clone())
    }

    /// The mapped memory that a slot is in: a number for it, where it begins, and its length.
    pub fn chunk_of(&self, slot: u32) -> (u32, *mut u8, u64) {
        match slots::place(slot) {
            (0, _) => (0, self.first.base(), self.first.bytes() as u64),
            (chunk, _) => self.slots.chunk(chunk),
        }
    }

    /// Where the contact of the process with number `index` is in the first chunk, in bytes, where
    /// each rank of a node has its block of so many bytes.
    pub fn card_offset(index: u32) -> u64 {
        records::process_offset(index) + Process::CONTACT
    }

    /// The words of a slot, as the road within the node gives them.
    pub fn words(self: &Arc<Arena>, slot: u32) -> CpuWords<Blocks, NodeIdle> {
        CpuWords::new(self.blocks(slot), NodeIdle::new(self.clone()))
    }

    /// Waits until all ranks are here, in the user's call `call`.
    pub fn barrier(self: &Arc<Arena>, call: &'static str) -> Result<()> {
        // Relaxed: only the threads of one collective call at a time come here.
        let turn = self.barriers.fetch_add(1, Ordering::Relaxed) + 1;
        fence::barrier(&self.collective_words(0, call), turn)
    }

    /// The words of a slot for a barrier of a call that makes or frees a window.
    pub fn collective_words(
        self: &Arc<Arena>,
        slot: u32,
        call: &'static str,
    ) -> CpuWords<Blocks, Collective> {
        CpuWords::new(self.blocks(slot), Collective::new(self.clone(), slot, call))
    }

    /// The rank in windows of the process that has number `index` here.
    pub fn name_of(&self, index: u32) -> u32 {
        self.wide.get().and_then(Weak::upgrade).map_or(index, |wide| wide.rank_of(index))
    }

    /// The number of the next window's creation.
    pub fn next_turn(&self) -> u64 {
        // Relaxed: windows of one communicator are made one after the other.
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// Fails if a process has died that still took part: one of these, or of other nodes that this
    /// one is part of a window with. For who waits, from time to time.
    pub fn dead(&self) -> Result<()> {
        let dead = self.lives.dead();
        match self.wide.get().and_then(Weak::upgrade) {
            Some(wide) => wide.look(dead),
            None => dead.map_or(Ok(()), |(rank, pid)| Err(Error::Died { rank, pid })),
        }
    }

    /// The same for who asks again and again instead of waiting: looks as often as who waits.
    pub fn dead_by_the_clock(&self) -> Result<()> {
        let now = now_ns();
        // Relaxed, as below: no more than a time; if two threads look at once, both may.
        let asked = self.asked.load(Ordering::Relaxed);
        if asked != 0 && now.saturating_sub(asked) < CHECK_NS {
            return Ok(());
        }
        self.asked.store(now, Ordering::Relaxed);
        if asked == 0 { Ok(()) } else { self.dead() }
    }

    /// A number that no other arena of this node has.
    pub fn id(&self) -> u64 {
        // Relaxed: written before this rank met rank 0 for the first time.
        records::trouble(&self.first).id.load(Ordering::Relaxed)
    }

    /// The word for who is lost, see [`losses`].
    pub fn lost(&self) -> &AtomicU64 {
        &records::trouble(&self.first).lost
    }

    /// Lets the connection thread tell of losses here.
    pub fn tell_losses(&self) {
        losses::watch(&self.lives);
    }
}

/// The first segment, mapped by all, and open until all have it. Collective: rank 0 makes it. What
/// fails at one rank is that one's error, and nothing that the others would know of.
fn first_segment(
    host: &Host,
    comm: Comm,
    rank: u32,
    bytes: u64,
) -> Result<(Result<Mapping>, Option<Segment>)> {
    let made = || {
        let segment = Segment::create(bytes)?;
        segment.reserve(0, bytes)?;
        Ok((segment.name(), segment))
    };
    let own = (rank == 0).then(made);
    let mut name = [0; 5];
    if let Some(Ok((own, _))) = &own {
        name = own.to_words();
    }
    comm.broadcast(host, &mut name)?;
    let name = Name::from_words(&name);
    Ok(match own {
        Some(Ok((_, segment))) => (segment.map(), Some(segment)),
        Some(Err(error)) => (Err(error), None),
        None if name.bytes != bytes => (Err(said::OTHERS), None),
        None => (Segment::open(&name).and_then(|segment| segment.map()), None),
    })
}

/// The trouble counter of a step (0 or 1) of a window that is being made.
fn counter(turn: u64, step: usize) -> usize {
    2 * (turn % 2) as usize + step
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
