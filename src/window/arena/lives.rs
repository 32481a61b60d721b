//! The processes of an arena, and whether they still run (`sys::life`). The state of a process is
//! kept from the first check on, for all arenas that the process is in.

use super::records;
use crate::sync::Ordering;
use crate::sys::life::{self, Life, Mark};
use crate::sys::segment::Mapping;
use std::sync::{Arc, OnceLock};

/// The liveness of the processes of an arena.
pub struct Lives {
    first: Arc<Mapping>,
    own: u32,
    known: Box<[OnceLock<Arc<Life>>]>,
}

impl Lives {
    /// Creates the state for the `size` processes whose records are in the segment `first`. This
    /// process has the rank `own`.
    pub fn new(first: Arc<Mapping>, own: u32, size: u32) -> Lives {
        Lives { first, own, known: (0..size).map(|_| OnceLock::new()).collect() }
    }

    /// Returns the first segment of the arena.
    pub fn first(&self) -> &Arc<Mapping> {
        &self.first
    }

    /// Returns the liveness of a rank's process.
    #[inline]
    pub fn of(&self, rank: u32) -> &Life {
        self.known[rank as usize].get_or_init(|| life::of(self.mark(rank)))
    }

    /// Returns the identity that the process has written to its record.
    fn mark(&self, rank: u32) -> Mark {
        let process = records::process(&self.first, rank);
        // Relaxed, all four: a collective call orders the stores of that rank before these loads.
        Mark {
            pid: process.pid.load(Ordering::Relaxed) as i32,
            start: process.start.load(Ordering::Relaxed),
            cookie_address: process.cookie_address.load(Ordering::Relaxed),
            cookie: process.cookie.load(Ordering::Relaxed),
        }
    }

    /// Returns another process that has ended without MPI_Finalize: its rank and its process id.
    pub fn dead(&self) -> Option<(u32, i32)> {
        let state = |rank| records::process(&self.first, rank).state.load(Ordering::Relaxed);
        let ranks = 0..self.known.len() as u32;
        // Relaxed: the check is repeated from time to time.
        let others = ranks.filter(|rank| *rank != self.own && state(*rank) == 0);
        let others: Vec<u32> = others.collect();
        let ended = life::first_ended(others.iter().map(|rank| self.of(*rank)))?;
        let rank = others[ended];
        Some((rank, self.of(rank).mark().pid))
    }
}
