//! The locations of the control words of a window over several nodes, for [`Far`], as two views:
//! [`Ranks`] has a block for each rank; [`Leaders`] has a block for each node, which is the block
//! of its leader.

use super::WideWindow;
use crate::arena::wait_progress::NodeIdle;
use crate::arena::wide::Member;
use crate::error::Result;
use crate::fabric::net::{Peer, Serving};
use crate::fabric::remote::Remote;
use crate::fabric::remote_words::{Far, FarWait, Locate};
use crate::fabric::{WordAt, WordId};
use crate::mpi::Host;
use crate::rank_numbers::{Rank, RankOnNode};
use crate::sync::AtomicU64;
use crate::window::LocalWindow;
use std::sync::Arc;

/// The words of all ranks.
#[derive(Clone, Copy)]
pub struct Ranks<'a> {
    part: &'a WideWindow,
    node: &'a LocalWindow,
}

/// The words of the leaders. The rank of a leader in this view is the number of its node. Only
/// leaders use it, and only the transport changes these words.
#[derive(Clone, Copy)]
pub struct Leaders<'a>(Ranks<'a>);

impl WideWindow {
    /// Returns the words of all ranks of the window `node`, which this is a part of.
    pub fn far<'a>(&'a self, node: &'a LocalWindow) -> Far<Ranks<'a>> {
        Far(Ranks { part: self, node })
    }

    /// Returns the words of the leaders.
    pub fn leads<'a>(&'a self, node: &'a LocalWindow) -> Far<Leaders<'a>> {
        Far(Leaders(Ranks { part: self, node }))
    }
}

impl<'a> Locate for Ranks<'a> {
    type Held = &'a Peer;
    type Idle = NodeIdle;

    fn rank(&self) -> Rank {
        self.part.wide.rank
    }

    fn size(&self) -> u32 {
        self.part.wide.size
    }

    fn own(&self, word: WordId) -> &AtomicU64 {
        self.node.blocks.far_word(self.node.arena().rank, word)
    }

    fn mapped(&self, at: WordAt) -> Option<&AtomicU64> {
        let index = self.part.near_index(at.rank)?;
        Some(self.node.blocks.far_word(index, at.word))
    }

    fn is_coherent(&self) -> bool {
        self.part.wide.coherent
    }

    fn find(&self, rank: Rank) -> Result<(&'a Peer, Remote)> {
        let target = self.part.target(self.node, rank)?;
        Ok((&target.peer, target.block))
    }

    fn known(&self, rank: Rank) -> Option<&'a Peer> {
        Some(&self.part.known_target(rank)?.peer)
    }

    fn flush_all(&self, but: Option<Rank>) -> Result<()> {
        let peers = &self.part.wide.peers;
        match but.and_then(|rank| self.known(rank)) {
            None => peers.flush(),
            Some(peer) => peers.flush_but(peer),
        }
    }

    fn wait(&self) -> FarWait {
        match self.part.wide.wire.is_served() {
            false => FarWait::Polls,
            true => FarWait::Sleeps(self.part.wide.spin),
        }
    }

    fn serving(&self) -> Option<Serving> {
        self.part.wide.wire.serving()
    }

    /// Ranks of the same node change the words of this rank without a request.
    fn serves_asleep(&self) -> bool {
        self.part.wide.near.size == 1
    }

    fn idle(&self) -> &NodeIdle {
        self.node.words.idle()
    }

    fn progress(&self) {
        self.part.wide.comm.progress(Host::get());
    }

    fn check(&self, losses: &mut u64) -> Result<()> {
        self.part.wide.check(losses)
    }
}

impl<'a> Locate for Leaders<'a> {
    type Held = Arc<Peer>;
    type Idle = NodeIdle;

    fn rank(&self) -> Rank {
        self.0.part.wide.node.in_leader_words()
    }

    #[allow(clippy::misnamed_getters)] // the ranks of this view are the nodes
    fn size(&self) -> u32 {
        self.0.part.wide.nodes
    }

    fn own(&self, word: WordId) -> &AtomicU64 {
        self.0.own(word)
    }

    fn mapped(&self, _at: WordAt) -> Option<&AtomicU64> {
        None
    }

    fn is_coherent(&self) -> bool {
        false
    }

    fn find(&self, node: Rank) -> Result<(Arc<Peer>, Remote)> {
        let (Ranks { part, .. }, node) = (self.0, node.of_leader_words());
        let words = part.block(Member { node, index: RankOnNode::LEADER });
        Ok((part.wide.leader(node), words))
    }

    fn known(&self, node: Rank) -> Option<Arc<Peer>> {
        Some(self.0.part.wide.leader(node.of_leader_words()))
    }

    fn flush_all(&self, but: Option<Rank>) -> Result<()> {
        let peers = &self.0.part.wide.peers;
        match but.and_then(|node| self.known(node)) {
            None => peers.flush(),
            Some(peer) => peers.flush_but(&peer),
        }
    }

    fn wait(&self) -> FarWait {
        self.0.wait()
    }

    fn serving(&self) -> Option<Serving> {
        self.0.serving()
    }

    fn idle(&self) -> &NodeIdle {
        self.0.idle()
    }

    fn progress(&self) {
        self.0.progress();
    }

    fn check(&self, losses: &mut u64) -> Result<()> {
        self.0.check(losses)
    }
}
