//! The control words of a window over several nodes, as two views: [`Far`] has a block for each
//! rank; `Leads` has one for each node, which is the block of its leader. Only the device changes
//! contended words, also on its own node, because operations of a device need not be atomic with
//! those of a processor (docs/decisions/0005). If they are atomic with each other on all nodes, the
//! processor changes the words of its own node. A rank reads its own words by loads.
//!
//! The device rings no doorbell: a waiting rank polls, and yields the core or sleeps between two
//! polls, for longer and longer times.

use super::WideWindow;
use super::targets::Target;
use crate::error::Result;
use crate::fabric::shm::words::{self, CHECK_NS, Idle};
use crate::fabric::verbs::{Peer, Remote, Ticket};
use crate::fabric::{Fetch, Rank, WordAt, WordId, Words};
use crate::mpi::Host;
use crate::sync::{AtomicU64, Ordering, full_fence, spin_hint};
use crate::window::LocalWindow;
use crate::window::waits::Waiting;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The view of the words of all ranks.
#[derive(Clone, Copy)]
pub struct Far<'a> {
    part: &'a WideWindow,
    node: &'a LocalWindow,
}

/// The result of an operation that was begun.
pub enum Begun<'a> {
    /// the result
    Known(u64),
    /// the device will deliver it
    Device(&'a Peer, Ticket),
}

/// The view of the words of the leaders. The rank of a leader in this view is the number of its
/// node. Only leaders use it; their own words are those of [`Far`].
#[derive(Clone, Copy)]
pub struct Leads<'a>(Far<'a>);

impl WideWindow {
    /// Returns the view of the words of all ranks of the window `node`, which this is a part of.
    pub fn far<'a>(&'a self, node: &'a LocalWindow) -> Far<'a> {
        Far { part: self, node }
    }

    /// Returns the view of the words of the leaders.
    pub fn leads<'a>(&'a self, node: &'a LocalWindow) -> Leads<'a> {
        Leads(self.far(node))
    }
}

/// Returns the address of a word of a block.
pub(super) fn word_in(block: Remote, word: WordId) -> Remote {
    block.offset(i64::from(word.0) * size_of::<u64>() as i64)
}

/// Rounds of polling, each with a yield, before the first sleep.
const AWAKE_ROUNDS: u32 = 100;
/// The first sleep and the longest.
const SLEEP_NS: core::ops::RangeInclusive<u64> = 20_000..=500_000;

/// Waits until a word of this process satisfies `until`.
fn wait(far: &Far<'_>, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
    let idle = far.node.words.idle();
    let mut wait = idle.begin(word);
    let value = wait_for(far, word, until, &mut wait);
    idle.end(wait);
    value
}

fn wait_for(
    far: &Far<'_>,
    word: WordId,
    until: impl Fn(u64) -> bool,
    wait: &mut Option<Waiting>,
) -> Result<u64> {
    let (part, idle, cell) = (far.part, far.node.words.idle(), far.own_cell(word));
    let (mut rounds, mut sleep, mut looked) = (0, *SLEEP_NS.start(), Instant::now());
    let mut losses = 0;
    loop {
        for _ in 0..idle.spins() {
            // Acquire: data sent before the change of the word are visible after this load.
            let value = cell.load(Ordering::Acquire);
            if until(value) {
                return Ok(value);
            }
            spin_hint();
        }
        part.wide.check(&mut losses)?;
        part.wide.comm.progress(Host::get());
        rounds += 1;
        if rounds < AWAKE_ROUNDS {
            std::thread::yield_now();
            continue;
        }
        std::thread::sleep(Duration::from_nanos(sleep));
        sleep = (2 * sleep).min(*SLEEP_NS.end());
        // By the clock, not by rounds: where ranks share cores, a short sleep may last long.
        if looked.elapsed() >= Duration::from_nanos(CHECK_NS) {
            idle.check(wait)?;
            looked = Instant::now();
        }
    }
}

impl<'a> Far<'a> {
    /// Returns the word itself if the processor may change it: on this node, if operations of the
    /// device and the processor are atomic with each other.
    fn near_cell(&self, at: WordAt) -> Option<&'a AtomicU64> {
        if !self.part.wide.coherent {
            return None;
        }
        let index = self.part.near_index(at.rank.0)?;
        Some(self.node.blocks.far_word(index, at.word))
    }

    fn target(&self, rank: Rank) -> Result<&'a Target> {
        self.part.target(self.node, rank.0)
    }

    fn own_cell(&self, word: WordId) -> &AtomicU64 {
        self.node.blocks.far_word(self.node.arena().rank, word)
    }
}

impl<'a> Words for Far<'a> {
    const FAR: bool = true;
    type Ticket = Begun<'a>;

    fn rank(&self) -> Rank {
        Rank(self.part.wide.rank)
    }

    fn size(&self) -> u32 {
        self.part.wide.size
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.finish(self.begin(at, op)?)
    }

    fn begin(&self, at: WordAt, op: Fetch) -> Result<Begun<'a>> {
        if let Some(cell) = self.near_cell(at) {
            return Ok(Begun::Known(words::fetch(cell, op)));
        }
        let target = self.target(at.rank)?;
        let ticket = target.peer.begin(word_in(target.block, at.word), op)?;
        Ok(Begun::Device(&target.peer, ticket))
    }

    fn finish(&self, asked: Begun<'a>) -> Result<u64> {
        match asked {
            Begun::Known(before) => Ok(before),
            Begun::Device(peer, ticket) => peer.finish(ticket),
        }
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        if let Some(cell) = self.near_cell(at) {
            words::fetch(cell, Fetch::Add(add));
            return Ok(());
        }
        let target = self.target(at.rank)?;
        target.peer.post(word_in(target.block, at.word), add)
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        if let Some(index) = self.part.near_index(at.rank.0) {
            // Acquire: as in `wait_for`. Loads also see changes by the device.
            let cell = self.node.blocks.far_word(index, at.word);
            return Ok(cell.load(Ordering::Acquire));
        }
        let target = self.target(at.rank)?;
        target.peer.read(word_in(target.block, at.word))
    }

    fn own(&self, word: WordId) -> u64 {
        // Acquire: as in `wait_for`.
        self.own_cell(word).load(Ordering::Acquire)
    }

    fn set_own(&self, word: WordId, value: u64) {
        // Release: the next process that may change the word learns of this store by a later
        // request of this rank.
        self.own_cell(word).store(value, Ordering::Release);
    }

    fn wait_own(&self, word: WordId, until: impl Fn(u64) -> bool) -> Result<u64> {
        wait(self, word, until)
    }

    /// Also orders stores of this process to memory of its node. Waits for the device's operations
    /// on a rank whose words the processor changes: there, the two ways are not ordered otherwise.
    fn order(&self, rank: Rank) -> Result<()> {
        full_fence();
        let Some(target) = self.part.known_target(rank.0) else { return Ok(()) };
        if self.part.wide.coherent && target.member.node == self.part.wide.node {
            return target.peer.flush();
        }
        target.peer.order();
        Ok(())
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        full_fence();
        self.part.known_target(rank.0).map_or(Ok(()), |target| target.peer.flush())
    }

    fn flush_all(&self) -> Result<()> {
        full_fence();
        self.part.wide.peers.flush()
    }
}

impl Leads<'_> {
    fn at(&self, at: WordAt) -> (Arc<Peer>, Remote) {
        let wide = &self.0.part.wide;
        let member = super::Member { node: at.rank.0, index: 0 };
        (wide.leader(at.rank.0), word_in(self.0.part.block(member), at.word))
    }
}

impl Words for Leads<'_> {
    const FAR: bool = true;
    type Ticket = (Arc<Peer>, Ticket);

    fn rank(&self) -> Rank {
        Rank(self.0.part.wide.node)
    }

    #[allow(clippy::misnamed_getters)] // the ranks of this view are the nodes
    fn size(&self) -> u32 {
        self.0.part.wide.nodes
    }

    fn fetch(&self, at: WordAt, op: Fetch) -> Result<u64> {
        self.finish(self.begin(at, op)?)
    }

    fn begin(&self, at: WordAt, op: Fetch) -> Result<(Arc<Peer>, Ticket)> {
        let (peer, at) = self.at(at);
        let ticket = peer.begin(at, op)?;
        Ok((peer, ticket))
    }

    fn finish(&self, (peer, ticket): (Arc<Peer>, Ticket)) -> Result<u64> {
        peer.finish(ticket)
    }

    fn post(&self, at: WordAt, add: u64) -> Result<()> {
        let (peer, at) = self.at(at);
        peer.post(at, add)
    }

    fn read(&self, at: WordAt) -> Result<u64> {
        let (peer, at) = self.at(at);
        peer.read(at)
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
        full_fence();
        self.0.part.wide.leader(rank.0).order();
        Ok(())
    }

    fn flush(&self, rank: Rank) -> Result<()> {
        full_fence();
        self.0.part.wide.leader(rank.0).flush()
    }

    fn flush_all(&self) -> Result<()> {
        self.0.flush_all()
    }
}
