//! Control words over this road for the conformance suite of all roads: [`Nic`]s of this process,
//! each with a block of words. Windows have an implementation of their own.

use super::*;
use crate::fabric::layout;
use crate::fabric::{Rank, WordAt, WordId, Words};

/// The words of one rank.
pub struct NicWords {
    rank: Rank,
    peers: Vec<(Arc<Peer>, Remote)>,
    all: Peers<usize>,
    side: Arc<Side>,
}

/// Makes the words of a window of `size` ranks.
pub fn window(open: Open, size: u32) -> Vec<NicWords> {
    let words = layout::words_per_rank(size) as usize;
    let sides: Vec<Arc<Side>> = (0..size).map(|_| Arc::new(Side::new(open, words))).collect();
    let of = |(rank, side): (usize, &Arc<Side>)| {
        let reach = |there: &Arc<Side>| (there.seen_by(&side.nic), there.at(0));
        let peers: Vec<_> = sides.iter().map(reach).collect();
        let all = together(&peers.iter().map(|(peer, _)| peer).collect::<Vec<_>>());
        NicWords { rank: Rank(rank as u32), peers, all, side: side.clone() }
    };
    sides.iter().enumerate().map(of).collect()
}

impl NicWords {
    fn peer(&self, rank: Rank) -> &Peer {
        &self.peers[rank.0 as usize].0
    }

    fn reach(&self, at: WordAt) -> (&Peer, Remote) {
        let (peer, base) = &self.peers[at.rank.0 as usize];
        (peer, base.offset(8 * i64::from(at.word.0)))
    }
}

impl Words for NicWords {
    const FAR: bool = true;
    type Ticket = (Rank, Ticket);

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.peers.len() as u32
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        let (peer, remote) = self.reach(at);
        peer.fetch(remote, op)
    }

    fn begin(&self, at: WordAt, op: Fetch) -> Result<(Rank, Ticket)> {
        let (peer, remote) = self.reach(at);
        Ok((at.rank, peer.begin(remote, op)?))
    }

    fn finish(&self, (rank, ticket): (Rank, Ticket)) -> Result<u64> {
        self.peer(rank).finish(ticket)
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        let (peer, remote) = self.reach(at);
        peer.post(remote, add)
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        let (peer, remote) = self.reach(at);
        peer.read(remote)
    }

    fn own(&self, word: WordId) -> u64 {
        self.side.word(word.0 as usize)
    }

    fn set_own(&self, word: WordId, value: u64) {
        // Release: a reader that sees the value sees what this rank stored before.
        self.side.words[word.0 as usize].store(value, Ordering::Release);
    }

    fn wait_own(&self, word: WordId, come: impl Fn(u64) -> bool) -> Result<u64> {
        let mut failed = Ok(());
        until("a word", || {
            self.side.nic.progress();
            failed = self.all.check();
            failed.is_err() || come(self.own(word))
        });
        failed.map(|()| self.own(word))
    }

    fn order(&self, rank: Rank) -> Result<()> {
        self.peer(rank).order();
        Ok(())
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        self.peer(rank).flush()
    }

    fn flush_all(&self) -> Result<()> {
        self.all.flush()
    }
}
