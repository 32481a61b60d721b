//! The processes of an arena, and whether they still run (`sys::life`). Each process writes its
//! identity to a record in memory that all of them map. The state of a process is kept from the
//! first check on, for all arenas that the process is in.

use crate::number::Number;
use crate::rank_numbers::RankOnNode;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::life::{self, Life, Mark};
use crate::sys::passing::KeyWords;
use crate::sys::segment::Mapping;
use std::sync::{Arc, OnceLock};

/// The record by which the other processes of a node recognise a process.
///
/// | `state` | meaning                                                     |
/// |---------|-------------------------------------------------------------|
/// | 0       | the process takes part                                      |
/// | 1       | it has called MPI_Finalize: its end is no failure           |
#[repr(C)]
pub struct LifeRecord {
    /// its process id; 0: not written yet
    pid: AtomicU32,
    /// 0 or 1, see above
    state: AtomicU32,
    /// its start time, see `sys::life`
    start: AtomicU64,
    /// the address of `cookie` in its memory
    cookie_address: AtomicU64,
    /// a number that no other process has at that address
    cookie: AtomicU64,
    /// the namespace in which its process id means it
    namespace: AtomicU64,
    /// the key with which it is asked for descriptors, see `sys::passing`
    key: [AtomicU64; 2],
}

impl LifeRecord {
    /// Writes the identity of this process.
    pub fn write(&self, own: &Mark) {
        // Relaxed: the Release below orders these stores.
        self.start.store(own.start, Ordering::Relaxed);
        self.cookie.store(own.cookie, Ordering::Relaxed);
        self.cookie_address.store(own.cookie_address, Ordering::Relaxed);
        self.namespace.store(own.namespace, Ordering::Relaxed);
        for (to, from) in self.key.iter().zip(own.key) {
            to.store(from, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire of `is_written`.
        self.pid.store(own.pid.cast_unsigned(), Ordering::Release);
    }

    /// Returns whether a process has written its identity.
    pub fn is_written(&self) -> bool {
        // Acquire: pairs with the Release of `write`.
        self.pid.load(Ordering::Acquire) != 0
    }

    /// Returns the key with which the process is asked for descriptors.
    pub fn key(&self) -> KeyWords {
        // Relaxed: as in `mark`.
        [0, 1].map(|half: usize| self.key[half].load(Ordering::Relaxed))
    }

    /// Returns the identity that the process has written.
    fn mark(&self) -> Mark {
        // Relaxed, as all below: a collective call orders the stores of that rank before these
        // loads.
        Mark {
            pid: self.pid.load(Ordering::Relaxed).cast_signed(),
            start: self.start.load(Ordering::Relaxed),
            cookie_address: self.cookie_address.load(Ordering::Relaxed),
            cookie: self.cookie.load(Ordering::Relaxed),
            namespace: self.namespace.load(Ordering::Relaxed),
            key: self.key(),
        }
    }
}

/// The places of the records in the segment of an arena, as offsets in bytes.
#[derive(Clone, Copy)]
pub struct Places {
    /// of the word for the lost process, see [`losses`](super::losses)
    pub lost: usize,
    /// of the record of rank 0
    pub first: usize,
    /// from the record of one rank to that of the next one
    pub stride: usize,
}

/// The liveness of the processes of an arena.
pub struct Lives {
    segment: Arc<Mapping>,
    places: Places,
    own: RankOnNode,
    known: Box<[OnceLock<Arc<Life>>]>,
}

impl Lives {
    /// Creates the state for the `size` processes of an arena. This process has the rank `own`.
    ///
    /// # Safety
    /// At each of these places, `segment` holds the word or the record of that name, aligned and
    /// zeroed at the beginning, and nothing else uses their bytes.
    pub unsafe fn new(segment: Arc<Mapping>, places: Places, own: RankOnNode, size: u32) -> Lives {
        Lives { segment, places, own, known: (0..size).map(|_| OnceLock::new()).collect() }
    }

    /// Returns the record of a rank's process.
    pub fn record(&self, rank: RankOnNode) -> &LifeRecord {
        assert!(rank.0.to_usize() < self.known.len());
        let offset = self.places.first + rank.0.to_usize() * self.places.stride;
        // SAFETY: the record of an existing rank is there, as the caller of `new` has promised, and
        // it consists of atomics.
        unsafe { &*self.segment.base().add(offset).cast::<LifeRecord>() }
    }

    /// Returns the word for the lost process, see [`losses`](super::losses).
    pub fn lost(&self) -> &AtomicU64 {
        // SAFETY: the word is there, as the caller of `new` has promised.
        unsafe { &*self.segment.base().add(self.places.lost).cast::<AtomicU64>() }
    }

    /// Returns the address of the segment with the records, which names this arena in a probe.
    pub fn address(&self) -> u64 {
        self.segment.base().addr().to_u64()
    }

    /// Returns the liveness of a rank's process.
    #[inline]
    pub fn of(&self, rank: RankOnNode) -> &Life {
        self.known[rank.0.to_usize()].get_or_init(|| life::of(self.record(rank).mark()))
    }

    /// Records that this process has called MPI_Finalize.
    pub fn depart(&self) {
        // Release: the last stores of this process come before the mark.
        self.record(self.own).state.store(1, Ordering::Release);
    }

    /// Returns another process that has ended without MPI_Finalize: its rank and its process id.
    pub fn dead(&self) -> Option<(RankOnNode, i32)> {
        // Relaxed: the check is repeated from time to time.
        let takes_part = |rank: RankOnNode| self.record(rank).state.load(Ordering::Relaxed) == 0;
        let ranks = RankOnNode::all(self.known.len().to_u32());
        let others = ranks.filter(|rank| *rank != self.own && takes_part(*rank));
        let others: Vec<RankOnNode> = others.collect();
        let ended = life::first_ended(others.iter().map(|rank| self.of(*rank)))?;
        let rank = others[ended];
        // It may have left, and then ended, between the two checks.
        takes_part(rank).then(|| (rank, self.of(rank).mark().pid))
    }
}
