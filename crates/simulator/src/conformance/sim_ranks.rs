//! The ranks of the conformance suite that run in the simulator. Each exposes memory to the others:
//! control words, or bytes, each in a cell of its own. Not the laws.

use super::ranks::{Exposing, RANKS};
use crate::faults::Fault;
use crate::simple_parts::Each;
use crate::{FAR, Sim, View, every};
use core::cell::{Cell, RefCell};
use fompi_base::error::Result;
use fompi_base::rank_numbers::Rank;
use fompi_fabric::layout::COMPLETE;
use fompi_fabric::remote::{Bytes, Remote};
use fompi_fabric::{Way, WordAt, Words};

/// A rank of the simulator that exposes bytes, each in a cell of its own. They arrive one by one,
/// in any order, at the latest at a flush.
pub struct SimRank<'a, 'b, P = SimPeer<'a, 'b>> {
    sim: &'a Sim<'b>,
    peers: Vec<P>,
    met: Cell<u64>,
}

/// A rank of the simulator, as another one reaches its bytes.
pub struct SimPeer<'a, 'b> {
    sim: &'a Sim<'b>,
    rank: Rank,
    /// buffers of gets under way, and where their bytes go
    gets: RefCell<Vec<(usize, *mut u8)>>,
}

impl Bytes for SimPeer<'_, '_> {
    type Runs<'r>
        = Each<'r, Self>
    where
        Self: 'r;

    unsafe fn put(&self, to: Remote, from: *const u8, bytes: u64) -> Result<()> {
        for index in 0..bytes as usize {
            // SAFETY: guaranteed by the caller.
            let byte = unsafe { from.add(index).read() };
            self.sim.put(self.rank, to.at as usize + index, byte.into());
        }
        Ok(())
    }

    unsafe fn get(&self, to: *mut u8, from: Remote, bytes: u64) -> Result<()> {
        for index in 0..bytes as usize {
            let buffer = self.sim.get(self.rank, from.at as usize + index);
            self.gets.borrow_mut().push((buffer, to.wrapping_add(index)));
        }
        Ok(())
    }

    fn runs(&self, within: Remote, way: Way) -> Each<'_, Self> {
        Each::new(self, within, way)
    }

    fn order(&self) {
        Words::order(self.sim, self.rank).unwrap();
    }

    fn flush(&self) -> Result<()> {
        Words::flush(self.sim, self.rank)?;
        for (buffer, to) in self.gets.take() {
            // SAFETY: the caller of `get` has kept the memory until now.
            unsafe { to.write(self.sim.got(buffer) as u8) };
        }
        Ok(())
    }
}

impl<P: Bytes> Exposing for SimRank<'_, '_, P> {
    type Peer = P;

    fn rank(&self) -> u32 {
        self.sim.index().0
    }

    fn bytes(&self) -> usize {
        64
    }

    fn reach(&self, rank: u32) -> (&P, Remote) {
        (&self.peers[rank as usize], Remote::default())
    }

    fn store(&self, at: usize, bytes: &[u8]) {
        for (cell, byte) in (at..).zip(bytes) {
            self.sim.store(cell, (*byte).into());
        }
    }

    fn load(&self, at: usize, to: &mut [u8]) {
        for (cell, byte) in (at..).zip(to) {
            *byte = self.sim.load(cell) as u8;
        }
    }

    fn meet(&self) {
        let sim = self.sim;
        for rank in (0..RANKS).map(Rank) {
            sim.post(WordAt { rank, word: COMPLETE }, 1).unwrap();
        }
        self.met.set(self.met.get() + u64::from(RANKS));
        sim.wait_own(COMPLETE, |count| count >= self.met.get()).unwrap();
    }
}

/// Returns a rank of the simulator, for bytes. `reach` makes its peers.
pub fn sim_rank<'a, 'b, P>(
    sim: &'a Sim<'b>,
    reach: impl Fn(SimPeer<'a, 'b>) -> P,
) -> SimRank<'a, 'b, P> {
    let peer = |rank| reach(SimPeer { sim, rank: Rank(rank), gets: RefCell::default() });
    SimRank { sim, peers: (0..RANKS).map(peer).collect(), met: Cell::new(0) }
}

/// Ranks of the simulator, for bytes.
pub fn sim_bytes(case: impl Fn(&SimRank<'_, '_>) + Copy + 'static) {
    every(RANKS, || move |sim: &Sim| case(&sim_rank(sim, |peer| peer)), |_| {});
}

/// Ranks of the simulator, for words that all reach in the same way.
pub fn sim(case: impl Fn(&Sim) + Copy + 'static) {
    every(RANKS, || case, |_| {});
}

/// Ranks of the simulator, for words that a transport between nodes reaches.
pub fn sim_far(case: impl Fn(&View<FAR>) + Copy + 'static) {
    every(RANKS, || move |sim: &Sim| case(&sim.far(Fault::Nothing)), |_| {});
}
