//! Test wrapper that overrides the constants of a transport: its words seem a round trip away, or a
//! lock word counts few holders.

use fompi_base::error::Result;
use fompi_base::rank_numbers::Rank;
use fompi_fabric::{Fetch, WordAt, WordId, Words};

/// The words of another transport: distant ones if `FAR` is true, and with `PLACES` for holders of
/// a lock.
pub struct Passed<W, const FAR: bool, const PLACES: u64>(pub W);

impl<W: Words, const FAR: bool, const PLACES: u64> Words for Passed<W, FAR, PLACES> {
    const FAR: bool = FAR || W::FAR;
    const HOLDERS_MAX: u64 = PLACES;
    type Ticket = W::Ticket;

    fn rank(&self) -> Rank {
        self.0.rank()
    }

    fn size(&self) -> u32 {
        self.0.size()
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.0.fetch(at, op)
    }

    fn begin(&self, at: WordAt, op: Fetch) -> Result<W::Ticket> {
        self.0.begin(at, op)
    }

    fn finish(&self, ticket: W::Ticket) -> Result<u64> {
        self.0.finish(ticket)
    }

    fn fetch_both(&self, both: [(WordAt, Fetch); 2]) -> [Result<u64>; 2] {
        self.0.fetch_both(both)
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        self.0.post(at, add)
    }

    fn post_awaited(&self, at: WordAt, add: u64) -> Result<()> {
        self.0.post_awaited(at, add)
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        self.0.read(at)
    }

    fn own(&self, word: WordId) -> u64 {
        self.0.own(word)
    }

    fn set_own(&self, word: WordId, value: u64) {
        self.0.set_own(word, value);
    }

    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        self.0.wait_own(word, until)
    }

    fn order(&self, rank: Rank) -> Result<()> {
        self.0.order(rank)
    }

    fn is_ordered(&self, before: Rank, next: Rank) -> bool {
        self.0.is_ordered(before, next)
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        self.0.flush(rank)
    }

    fn flush_all(&self) -> Result<()> {
        self.0.flush_all()
    }

    fn flush_others(&self, rank: Rank) -> Result<()> {
        self.0.flush_others(rank)
    }
}
