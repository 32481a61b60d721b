//! The targets of a window over many nodes: what this process knows of the ranks that it has had to
//! do with, found at the first access and then without a lock. Nothing is kept of the others.
//!
//! What a rank exposes says its descriptor, which lies in the memory of its node: the first access
//! reads it from there, in one round trip; one more if the rank has registered the memory itself,
//! for who it is.

use super::{Arena, Card, Member, NodeInfo, Part, Peer, Remote};
use crate::error::Result;
use crate::sync::{AtomicPtr, Ordering};
use crate::window::blocks::Descriptor;
use crate::window::{Memory, Node};
use core::mem::MaybeUninit;
use core::ptr;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Targets that are found without a lock, if they do not share a place.
const RECENT: usize = 8;

/// The targets of a window.
#[derive(Default)]
pub struct Targets {
    /// the target that was last looked up of those with the same number modulo [`RECENT`]; points
    /// into `known`
    recent: [AtomicPtr<Target>; RECENT],
    /// never shrinks, and its boxes stay where they are
    known: Mutex<BTreeMap<u32, Box<Target>>>,
}

/// A rank of the window that this process has had to do with.
pub struct Target {
    rank: u32,
    /// where it is
    pub member: Member,
    /// who has its control words
    pub words: Arc<Peer>,
    /// where they begin
    pub block: Remote,
    data: OnceLock<Data>,
    /// the process itself, if it was contacted
    owner: OnceLock<Arc<Peer>>,
}

/// What it exposes.
pub struct Data {
    /// as it told
    pub exposed: Descriptor,
    /// who has the memory
    pub peer: Arc<Peer>,
    /// where it begins
    pub at: Remote,
}

impl Targets {
    /// A target that was contacted before.
    #[inline]
    pub fn find(&self, rank: u32) -> Option<&Target> {
        // Acquire: pairs with the Release in `insert`.
        let recent = self.recent[rank as usize % RECENT].load(Ordering::Acquire);
        // SAFETY: an entry of `known`, which lives as long as `self`.
        let recent = unsafe { recent.as_ref() };
        match recent {
            Some(recent) if recent.rank == rank => Some(recent),
            _ => self.look_up(rank),
        }
    }

    #[cold]
    fn look_up(&self, rank: u32) -> Option<&Target> {
        let known = self.known.lock();
        let found = ptr::from_ref(&**known.get(&rank)?);
        self.remember(rank, found);
        // SAFETY: boxes of `known` stay where they are as long as `self`.
        Some(unsafe { &*found })
    }

    fn insert(&self, rank: u32, target: impl FnOnce() -> Target) -> &Target {
        let mut known = self.known.lock();
        let found = ptr::from_ref(&**known.entry(rank).or_insert_with(|| Box::new(target())));
        self.remember(rank, found);
        // SAFETY: as in `look_up`.
        unsafe { &*found }
    }

    fn remember(&self, rank: u32, target: *const Target) {
        // Release: pairs with the Acquire in `find`.
        self.recent[rank as usize % RECENT].store(target.cast_mut(), Ordering::Release);
    }
}

impl Target {
    /// The process itself, if it was contacted.
    pub fn known_owner(&self) -> Option<&Arc<Peer>> {
        self.owner.get()
    }

    /// Waits until everything that was sent to this rank is done there.
    pub fn flush(&self) -> Result<()> {
        self.words.flush()?;
        self.owner.get().map_or(Ok(()), |owner| owner.flush())
    }

    /// Waits until the buffers of all transfers with this rank may be used again.
    pub fn flush_local(&self) -> Result<()> {
        self.words.flush_local()?;
        self.owner.get().map_or(Ok(()), |owner| owner.flush_local())
    }
}

impl Part {
    /// Waits until the buffers of all transfers may be used again.
    pub fn flush_local_all(&self) -> Result<()> {
        let known = self.targets.known.lock();
        known.values().try_for_each(|target| target.flush_local())
    }

    /// What this process knows of a rank.
    #[inline]
    pub fn target(&self, rank: u32) -> &Target {
        match self.targets.find(rank) {
            Some(target) => target,
            None => self.new_target(rank),
        }
    }

    /// The same, if it has had to do with it.
    #[inline]
    pub fn known_target(&self, rank: u32) -> Option<&Target> {
        self.targets.find(rank)
    }

    #[cold]
    fn new_target(&self, rank: u32) -> &Target {
        let member = self.wide.member(rank);
        let (words, block) = (self.wide.leader(member.node), self.block(member));
        self.targets.insert(rank, || Target {
            rank,
            member,
            words,
            block,
            data: OnceLock::new(),
            owner: OnceLock::new(),
        })
    }

    /// What a rank exposes.
    #[inline]
    pub fn data<'a>(&self, node: &Node, target: &'a Target) -> Result<&'a Data> {
        match target.data.get() {
            Some(data) => Ok(data),
            None => self.ask(node, target),
        }
    }

    #[cold]
    fn ask<'a>(&self, node: &Node, target: &'a Target) -> Result<&'a Data> {
        let member = target.member;
        let is_near = member.node == self.wide.node;
        let exposed = match is_near {
            true => *node.words.cells().descriptor(member.index),
            false => {
                let bytes = node.words.cells().far_bytes() as i64;
                // SAFETY: the bits of a descriptor are all values.
                unsafe { fetch::<Descriptor>(&target.words, target.block.offset(bytes))? }
            }
        };
        let (peer, at) = match &node.memory {
            Memory::Common(_) => {
                let data = self.places.at(member.node).data;
                (target.words.clone(), data.offset(exposed.offset as i64))
            }
            _ if exposed.remote.key == 0 && exposed.remote.at == 0 => {
                (target.words.clone(), Remote::default())
            }
            _ => (self.owner(target)?, exposed.remote),
        };
        Ok(target.data.get_or_init(|| Data { exposed, peer, at }))
    }

    /// What a rank exposes, and its number on this node if it is here.
    pub fn exposed_by(&self, node: &Node, rank: u32) -> Result<(Option<u32>, Descriptor)> {
        let target = self.target(rank);
        let index = (target.member.node == self.wide.node).then_some(target.member.index);
        Ok((index, self.data(node, target)?.exposed))
    }

    /// Whether a peer has the control words of a rank: then requests to both come in their order.
    pub fn has_words_of(&self, rank: u32, peer: &Peer) -> bool {
        core::ptr::eq(&raw const *self.target(rank).words, peer)
    }

    /// The number of a rank among those of this node, if it is one of them.
    pub fn near_index(&self, rank: u32) -> Option<u32> {
        let member = self.target(rank).member;
        (member.node == self.wide.node).then_some(member.index)
    }

    /// The process of a rank that has registered memory itself.
    pub fn owner(&self, target: &Target) -> Result<Arc<Peer>> {
        if let Some(owner) = target.owner.get() {
            return Ok(owner.clone());
        }
        let (wide, index) = (&self.wide, target.member.index);
        let card = match target.member.node == wide.node {
            true => wide.near.process(index).card(),
            false => {
                let NodeInfo { first, .. } = wide.infos.at(target.member.node);
                let at = Arena::card_offset(index);
                // SAFETY: the bits of a card are all values.
                unsafe { fetch::<Card>(&target.words, first.offset(at as i64))? }
            }
        };
        Ok(target.owner.get_or_init(|| wide.nic.peer(&card)).clone())
    }
}

/// Reads plain data from the memory of another process.
///
/// # Safety
/// All bits of a `T` are values.
unsafe fn fetch<T: Copy>(peer: &Peer, at: Remote) -> Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: so many bytes of ours, which stay until the get has arrived.
    unsafe { peer.get(value.as_mut_ptr().cast(), at, size_of::<T>() as u64)? };
    peer.flush_local()?;
    // SAFETY: written, and the caller vouches for the bits.
    Ok(unsafe { value.assume_init() })
}
