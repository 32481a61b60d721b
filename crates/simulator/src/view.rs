//! The views of the words of a rank in the simulator: all ranks in the same way, the ranks of its
//! node, all ranks through a device, or the leaders of the nodes. Faults are in `faults.rs`.

use super::rank::Sim;
use super::transport::{FAR, FLAT, Flush, LEADS, NEAR, SimCounts};
use crate::faults::{Fault, Faulty};
use fompi_base::error::Result;
use fompi_base::rank_numbers::Rank;
use fompi_fabric::{Fetch, WordAt, WordId, Words, layout};

/// The words of a rank in a view, with a fault.
pub type View<'a, 'b, const VIEW: usize = FLAT> = Faulty<SimWords<'a, 'b, VIEW>>;

/// The words of a rank in a view.
pub struct SimWords<'a, 'b, const VIEW: usize = FLAT> {
    /// the thread of the rank
    pub sim: &'a Sim<'b>,
}

impl<const VIEW: usize> SimWords<'_, '_, VIEW> {
    /// Returns the numbers of operations that this rank has sent so far in this view.
    pub fn counts(&self) -> SimCounts {
        self.sim.counts_of(VIEW)
    }

    /// Returns the rank in the world of a rank of this view.
    fn world(&self, rank: Rank) -> Rank {
        let per_node = self.sim.shape().per_node;
        match VIEW {
            NEAR => Rank(self.sim.node() * per_node + rank.0),
            LEADS => Rank(rank.0 * per_node),
            _ => rank,
        }
    }

    fn at(&self, at: WordAt) -> WordAt {
        assert!(at.rank.0 < self.size());
        WordAt { rank: self.world(at.rank), word: at.word }
    }
}

impl<const VIEW: usize> Words for SimWords<'_, '_, VIEW> {
    const FAR: bool = VIEW >= FAR;
    type Ticket = usize;

    fn rank(&self) -> Rank {
        let (me, per_node) = (self.sim.index(), self.sim.shape().per_node);
        match VIEW {
            NEAR => Rank(me.0 % per_node),
            LEADS => {
                assert!(me.0.is_multiple_of(per_node), "{me:?} is no leader");
                Rank(me.0 / per_node)
            }
            _ => me,
        }
    }

    fn size(&self) -> u32 {
        let shape = self.sim.shape();
        match VIEW {
            NEAR => shape.per_node.min(shape.ranks - self.sim.node() * shape.per_node),
            LEADS => shape.ranks.div_ceil(shape.per_node),
            _ => shape.ranks,
        }
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        Ok(self.sim.fetch_word(VIEW, self.at(at), op))
    }

    fn begin(&self, at: WordAt, op: Fetch) -> Result<usize> {
        Ok(self.sim.begin_fetch(VIEW, self.at(at), op))
    }

    fn finish(&self, ticket: usize) -> Result<u64> {
        Ok(self.sim.finish_fetch(ticket))
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        self.sim.post_word(VIEW, self.at(at), add);
        Ok(())
    }

    fn post_awaited(&self, at: WordAt, add: u64) -> Result<()> {
        self.sim.post_awaited(VIEW, self.at(at), add);
        Ok(())
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        Ok(self.sim.read_word(VIEW, self.at(at)))
    }

    fn own(&self, word: WordId) -> u64 {
        self.sim.own_word(VIEW, word)
    }

    fn set_own(&self, word: WordId, value: u64) {
        self.sim.set_word(VIEW, word, value);
    }

    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        layout::purpose(word); // which fails for a word that a report would not know
        Ok(self.sim.wait(VIEW, word, until))
    }

    fn order(&self, rank: Rank) -> Result<()> {
        self.sim.order_to(VIEW, self.world(rank));
        Ok(())
    }

    fn is_ordered(&self, before: Rank, next: Rank) -> bool {
        before == next || self.sim.is_idle(self.world(before))
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        self.sim.flush_to(VIEW, Flush::Of(self.world(rank)));
        Ok(())
    }

    fn flush_all(&self) -> Result<()> {
        self.sim.flush_to(VIEW, Flush::All);
        Ok(())
    }

    fn flush_others(&self, rank: Rank) -> Result<()> {
        self.sim.flush_to(VIEW, Flush::AllBut(self.world(rank)));
        Ok(())
    }
}

impl<'a> Sim<'a> {
    /// Returns a view of this rank, with a fault.
    pub fn view<const VIEW: usize>(&self, fault: Fault) -> View<'_, 'a, VIEW> {
        Faulty::new(SimWords { sim: self }, fault)
    }

    /// Returns the view of words that all ranks reach in the same way.
    pub fn weak(&self, fault: Fault) -> View<'_, 'a, FLAT> {
        self.view(fault)
    }

    /// Returns the view [`FLAT`].
    fn flat(&self) -> SimWords<'_, 'a, FLAT> {
        SimWords { sim: self }
    }

    /// Returns the view of the words of this node.
    pub fn near(&self, fault: Fault) -> View<'_, 'a, NEAR> {
        self.view(fault)
    }

    /// Returns the view of words that are reached through a device.
    pub fn far(&self, fault: Fault) -> View<'_, 'a, FAR> {
        self.view(fault)
    }

    /// Returns the view of the words of the leaders of all nodes.
    pub fn leads(&self, fault: Fault) -> View<'_, 'a, LEADS> {
        self.view(fault)
    }
}

impl Words for Sim<'_> {
    type Ticket = usize;

    fn rank(&self) -> Rank {
        self.index()
    }

    fn size(&self) -> u32 {
        self.shape().ranks
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.flat().fetch(at, op)
    }

    fn begin(&self, at: WordAt, op: Fetch) -> Result<usize> {
        self.flat().begin(at, op)
    }

    fn finish(&self, ticket: usize) -> Result<u64> {
        self.flat().finish(ticket)
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        self.flat().post(at, add)
    }

    fn post_awaited(&self, at: WordAt, add: u64) -> Result<()> {
        self.flat().post_awaited(at, add)
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        self.flat().read(at)
    }

    fn own(&self, word: WordId) -> u64 {
        self.flat().own(word)
    }

    fn set_own(&self, word: WordId, value: u64) {
        self.flat().set_own(word, value);
    }

    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        self.flat().wait_own(word, until)
    }

    fn order(&self, rank: Rank) -> Result<()> {
        self.flat().order(rank)
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        self.flat().flush(rank)
    }

    fn flush_all(&self) -> Result<()> {
        self.flat().flush_all()
    }

    fn is_ordered(&self, before: Rank, next: Rank) -> bool {
        self.flat().is_ordered(before, next)
    }

    fn flush_others(&self, rank: Rank) -> Result<()> {
        self.flat().flush_others(rank)
    }
}
