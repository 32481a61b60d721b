//! The arena: control memory that the processes of one node map. It is made for the first window of
//! a communicator (`window::create`) and kept by the windows, which may outlive the communicator.
//! A window takes a slot of the arena. A slot has a control block per rank: a [`Descriptor`] and
//! then the control words of `fabric::layout`. Slot 0 belongs to the arena itself, for the barriers
//! of window creation.
//!
//! [`Descriptor`]: descriptor::Descriptor

pub mod barrier;
pub mod control_blocks;
pub mod descriptor;
mod first_segment;
pub mod mapped_bytes;
mod records;
pub mod wait_progress;
pub mod wide;

pub use records::{Counter, ProcessRecord, Record};

use crate::epoch::fence::BarrierKind;
use crate::error::{Error, Result};
use crate::fabric::cma;
use crate::fabric::layout;
use crate::fabric::shm::awake::AwakeRecord;
use crate::fabric::shm::words::CHECK_NS;
use crate::liveness::lives::Lives;
use crate::liveness::{departures, losses};
use crate::memory::heap;
pub use crate::memory::slots::Announcement;
use crate::memory::slots::{self, FIRST_SLOTS, Slots};
use crate::memory::window_memory::Common;
use crate::memory::window_memory_cache::KeptList;
use crate::mpi::comm::{Comm, Group};
use crate::mpi::{Host, own_job};
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode, Slot};
use crate::report::Why;
use crate::sync::{AtomicU64, Ordering};
use crate::sys::life::{Mark, now_ns};
use crate::sys::page_bytes;
use crate::sys::segment::Mapping;
use crate::sys::{passing, process};
use first_segment::FirstSegment;
use mapped_bytes::WORDS_AT;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

/// The arena, as one process uses it.
pub struct Arena {
    /// internal duplicate of the user's communicator
    pub comm: Comm,
    /// the group of `comm`
    pub group: Group,
    /// the rank of this process
    pub rank: RankOnNode,
    /// the number of ranks
    pub size: u32,
    /// the slots of its windows
    pub slots: Slots,
    /// bytes of each rank's block
    pub stride: usize,
    /// bytes of each block, ahead of the descriptor, that hold words for ranks of other nodes
    pub far_bytes: usize,
    first: Arc<Mapping>,
    lives: Arc<Lives>,
    /// when [`Arena::check_dead_by_the_clock`] last checked for dead processes; 0: never
    last_check: AtomicU64,
    /// the barrier of the ranks, on slot 0 and in each window: all ranks know the same one
    pub barrier: BarrierKind,
    /// the number of barriers on slot 0 so far
    barriers: AtomicU64,
    turns: AtomicU64,
    /// the counters of reports as this rank last saw them
    seen: [AtomicU64; Counter::COUNT],
    /// the number of calls so far that may have a quiet part (`create::quiet`)
    rounds: AtomicU64,
    /// whether all ranks of the job on this node are in this arena
    is_all_of_job: bool,
    /// the memory of freed allocated windows that is kept
    pub kept: Mutex<KeptList<Common>>,
    /// whether this process may access the memory of all the others
    permitted: OnceLock<bool>,
    /// see [`Arena::yields_reach_all`]
    yields_reach_all: OnceLock<bool>,
    /// whether this process spins before it sleeps when it waits for other processes of its node
    pub awake: AwakeRecord,
    /// what its windows share, see [`Arena::shared_by_windows`]
    of_windows: OnceLock<Box<dyn Any + Send + Sync>>,
    /// the interface to the other nodes, if the ranks of the communicator are on several nodes
    other_nodes: OnceLock<Weak<dyn OtherNodes>>,
}

/// The knowledge about other nodes that an arena needs if the ranks of the communicator are on
/// several nodes.
pub trait OtherNodes: Send + Sync {
    /// Returns the rank in the whole communicator of the process with rank `index` in the arena.
    fn rank_of(&self, index: RankOnNode) -> Rank;

    /// Makes one failure check for a waiting rank, without waiting for answers. Fails if a process
    /// is lost. `dead` is a process of the arena that has died, by its rank there and process id.
    fn check_nodes(&self, dead: Option<(RankOnNode, i32)>) -> Result<()>;

    /// Whether a device keeps the pages of windows in place, so that all of them are allocated.
    fn keeps_in_place(&self) -> bool;
}

/// Returns the bytes of a rank's block, without words for ranks of other nodes.
fn block_bytes(size: u32) -> usize {
    let words = layout::words_per_rank(size).to_usize() * size_of::<u64>();
    (WORDS_AT + words).next_multiple_of(64)
}

impl Arena {
    /// Makes the arena of the processes of `user`, or returns the reason why there is none. Each
    /// block has `far_bytes` bytes (whole cache lines) of words for ranks of other nodes.
    /// Collective.
    pub fn make(
        host: &'static Host,
        user: Comm,
        far_bytes: usize,
    ) -> Result<core::result::Result<Arc<Arena>, Why>> {
        let comm = user.duplicate(host)?;
        let (rank, size) = (RankOnNode(comm.rank(host)?), comm.size(host)?);
        let stride = block_bytes(size) + far_bytes;
        let slot_bytes = stride * size.to_usize();
        let all = records::bytes(size) + slot_bytes * FIRST_SLOTS.to_usize();
        let bytes = all.next_multiple_of(page_bytes().to_usize()).to_u64();
        let offer = FirstSegment::announce(host, comm, rank, bytes)?;
        let first = match offer.share(host, comm)?.inspect_err(|_| comm.free(host)) {
            Ok(first) => Arc::new(first),
            Err(why) => return Ok(Err(why)),
        };
        // SAFETY: the segment is zeroed memory with this layout, see `records`.
        let lives = unsafe { Lives::new(first.clone(), records::LIVES, rank, size) };
        let mut arena = Arena {
            comm,
            group: comm.group(host)?,
            rank,
            size,
            slots: Slots::new(slot_bytes.to_u64()),
            stride,
            far_bytes,
            lives: Arc::new(lives),
            first,
            last_check: AtomicU64::new(0),
            barrier: BarrierKind::Rounds,
            barriers: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            seen: [const { AtomicU64::new(0) }; Counter::COUNT],
            rounds: AtomicU64::new(0),
            is_all_of_job: own_job::has_only(host, size),
            kept: Mutex::new(KeptList::NONE),
            permitted: OnceLock::new(),
            yields_reach_all: OnceLock::new(),
            awake: AwakeRecord::default(),
            of_windows: OnceLock::new(),
            other_nodes: OnceLock::new(),
        };
        arena.write_own_record();
        comm.all(host, true)?;
        if offer.is_passed() {
            (RankOnNode::all(size)).for_each(|rank| passing::learn(arena.lives.record(rank).key()));
        }
        // On another node, that name may have opened another file. If all ranks have opened the
        // same file, it has the process ids of all of them.
        let known = |rank| arena.lives.record(rank).is_written();
        if !comm.all(host, RankOnNode::all(size).all(known))? {
            return Ok(Err(Why::NoTransport));
        }
        arena.barrier = arena.barrier_of_leader();
        let arena = Arc::new(arena);
        departures::note(&arena.lives);
        heap::shared_by(size);
        Ok(Ok(arena))
    }

    /// Writes this process's id to its record, and the values by which others make sure that a
    /// process with that id is this one.
    fn write_own_record(&self) {
        let mark = Mark::own();
        if self.rank == RankOnNode::LEADER {
            // Unique: no process makes two arenas in one nanosecond, and the ids of processes
            // differ, or their numbers do.
            let id = mark.pid.cast_unsigned().to_u64() << 40 ^ now_ns() ^ passing::own_number();
            // Relaxed: the Release in `write` orders it.
            let common = records::failures(&self.first);
            common.id.store(id, Ordering::Relaxed);
            let shares = self.size.to_usize() > process::cores();
            common.shares_cores.store(u64::from(shares), Ordering::Relaxed); // as `id`
        }
        self.lives.record(self.rank).write(&mark);
    }

    /// Returns the barrier that rank 0 has chosen. Call after the collective call that follows
    /// [`Arena::write_own_record`].
    fn barrier_of_leader(&self) -> BarrierKind {
        // Relaxed: that call orders the store by rank 0 before this load.
        match records::failures(&self.first).shares_cores.load(Ordering::Relaxed) {
            0 => BarrierKind::Rounds,
            _ => BarrierKind::OF_SHARED_CORES,
        }
    }

    /// Returns what the windows of the arena share, always of one type, which `make` makes the
    /// first time.
    pub fn shared_by_windows<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let shared = self.of_windows.get_or_init(|| Box::new(make()));
        shared.downcast_ref().expect("one type")
    }

    /// Returns the record of a rank's process.
    #[inline]
    pub fn process(&self, rank: RankOnNode) -> &ProcessRecord {
        assert!(rank.0 < self.size);
        records::process(&self.first, rank)
    }

    /// Returns the address of a rank's exchange record for the creation number `turn`.
    pub fn record(&self, turn: u64, rank: RankOnNode) -> *mut Record {
        assert!(rank.0 < self.size);
        records::record(&self.first, self.size, turn, rank)
    }

    /// Returns a rank's process, for access to its memory by process_vm.
    #[inline]
    pub fn memory_of(&self, rank: RankOnNode) -> cma::Process<'_> {
        cma::Process::new(rank, self.lives.of(rank))
    }

    /// Returns the id of a rank's process here; `None` if it is in another namespace of processes.
    pub fn pid_of(&self, rank: RankOnNode) -> Option<i32> {
        let mark = self.lives.of(rank).mark();
        (!mark.is_elsewhere()).then_some(mark.pid)
    }

    /// Allows the other processes to access the memory of this one.
    pub fn permit(&self) {
        if self.size > 1 {
            cma::allow(RankOnNode::all(self.size).filter_map(|rank| self.pid_of(rank)));
        }
    }

    /// Returns whether it is known if this process may access the memory of all the others.
    pub fn knows_permission(&self) -> bool {
        self.permitted.get().is_some()
    }

    /// Determines whether this process may access the memory of all other processes, which have all
    /// called [`Arena::permit`].
    pub fn find_permission(&self) {
        let mut others = RankOnNode::all(self.size).filter(|rank| *rank != self.rank);
        let _ = self.permitted.set(others.all(|rank| self.memory_of(rank).shows_cookie()));
    }

    /// Returns whether this process may access the memory of all the others; false before
    /// [`Arena::find_permission`].
    pub fn is_permitted(&self) -> bool {
        self.permitted.get() == Some(&true)
    }

    /// Whether a yield of this process can give its core to the process of any other rank.
    pub fn yields_reach_all(&self) -> bool {
        *self.yields_reach_all.get_or_init(|| {
            let reaches = |rank| self.pid_of(rank).is_none_or(process::yields_reach);
            RankOnNode::all(self.size).all(reaches)
        })
    }

    /// Counts this rank in a counter.
    pub fn raise(&self, Counter(index): Counter) {
        // Relaxed: the barrier that follows orders it.
        records::failures(&self.first).counters[index].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether any rank was counted in a counter. All ranks call this once, after the
    /// barrier that follows `raise`, or none does.
    pub fn is_raised(&self, Counter(index): Counter) -> bool {
        // Relaxed: as in `raise`; `seen` is this rank's own.
        let now = records::failures(&self.first).counters[index].load(Ordering::Relaxed);
        self.seen[index].swap(now, Ordering::Relaxed) != now
    }

    /// Returns the number of the next call that may have a quiet part.
    pub fn next_round(&self) -> u64 {
        // Relaxed: as in `next_barrier`.
        self.rounds.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether all ranks of the job on this node are in this arena, as far as this process knows,
    /// and the job is connected with no other one.
    pub fn is_all_of_job(&self) -> bool {
        self.is_all_of_job && !own_job::is_connected()
    }

    /// Returns the address of a slot whose chunk is mapped: of the control block of rank 0.
    pub fn base_of(&self, slot: Slot) -> *mut u8 {
        match slots::place(slot) {
            (0, index) => {
                let slot_bytes = self.stride * self.size.to_usize();
                let offset = records::bytes(self.size) + slot_bytes * index.to_usize();
                // SAFETY: the first chunk lies behind the records of the first segment.
                unsafe { self.first.base().add(offset) }
            }
            _ => self.slots.base(slot),
        }
    }

    /// Returns the mapped chunk that a slot is in: its number, address and length in bytes.
    pub fn chunk_of(&self, slot: Slot) -> (u32, *mut u8, u64) {
        match slots::place(slot) {
            (0, _) => (0, self.first.base(), self.first.bytes().to_u64()),
            (chunk, _) => self.slots.chunk(chunk),
        }
    }

    /// Returns the offset in bytes of a process's contact in the first segment; `index` is the
    /// process's rank in the arena.
    pub fn contact_offset(index: RankOnNode) -> u64 {
        records::process_offset(index) + ProcessRecord::CONTACT
    }

    /// Returns the number of the next barrier on slot 0.
    pub fn next_barrier(&self) -> u64 {
        // Relaxed: only one collective call at a time is in progress on a communicator.
        self.barriers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the rank in the window of the process with rank `index` in this arena.
    pub fn name_of(&self, index: RankOnNode) -> Rank {
        self.other_nodes().map_or(index.on_only_node(), |other_nodes| other_nodes.rank_of(index))
    }

    /// Sets the interface to the other nodes, for an arena whose ranks are those of one node of
    /// several. Waiting ranks of the arena then check the other nodes too.
    pub fn set_other_nodes(&self, other_nodes: Weak<dyn OtherNodes>) {
        let _ = self.other_nodes.set(other_nodes);
    }

    fn other_nodes(&self) -> Option<Arc<dyn OtherNodes>> {
        self.other_nodes.get().and_then(Weak::upgrade)
    }

    /// Returns whether a device keeps the pages of windows in place, so that all of them are
    /// allocated: over several nodes an RDMA device does.
    pub fn keeps_in_place(&self) -> bool {
        self.other_nodes().is_some_and(|other_nodes| other_nodes.keeps_in_place())
    }

    /// Whether all ranks of the communicator are on this node.
    pub fn is_whole(&self) -> bool {
        self.other_nodes.get().is_none()
    }

    /// Returns the creation number of the next window.
    pub fn next_turn(&self) -> u64 {
        // Relaxed: the windows of one communicator are made one after the other.
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// Fails if a process of this arena, or of other nodes in the same wide arena, has died without
    /// MPI_Finalize. A waiting rank calls this from time to time.
    pub fn check_dead(&self) -> Result<()> {
        let dead = self.lives.dead();
        match self.other_nodes() {
            Some(other_nodes) => other_nodes.check_nodes(dead),
            None => {
                let died = |(rank, pid): (RankOnNode, i32)| {
                    Err(Error::Died { rank: rank.on_only_node(), pid })
                };
                dead.map_or(Ok(()), died)
            }
        }
    }

    /// Whether the process of a rank has ended.
    pub fn has_ended(&self, rank: RankOnNode) -> bool {
        rank != self.rank && self.lives.of(rank).has_ended()
    }

    /// Does [`Arena::check_dead`] at intervals of a waiting rank, for calls that a program repeats
    /// instead of waiting (MPI_Win_test).
    pub fn check_dead_by_the_clock(&self) -> Result<()> {
        let now = now_ns();
        // Relaxed, as below: only a time; if two threads check at once, both may.
        let last_check = self.last_check.load(Ordering::Relaxed);
        if last_check != 0 && now.saturating_sub(last_check) < CHECK_NS {
            return Ok(());
        }
        self.last_check.store(now, Ordering::Relaxed);
        if last_check == 0 { Ok(()) } else { self.check_dead() }
    }

    /// Returns a number that no other arena of this node has.
    pub fn id(&self) -> u64 {
        // Relaxed: a collective call orders the store by rank 0 before this load.
        records::failures(&self.first).id.load(Ordering::Relaxed)
    }

    /// Returns the word for the lost process, see `liveness::losses`.
    pub fn lost(&self) -> &AtomicU64 {
        self.lives.lost()
    }

    /// Registers this arena for probes of other nodes, which the connection thread answers.
    pub fn answer_probes(&self) {
        losses::watch(&self.lives);
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
