//! The targets of a window over many nodes: what this process knows of the ranks that it has had to
//! do with, found at the first access and then without a lock. Nothing is kept of the others.
//!
//! One process serves a rank, and all that is sent to that rank takes the queue pair to it, so that
//! it stays in order: the leader of its node where the window's memory is the node's, else the rank
//! itself. What a rank exposes says its descriptor, in the memory of its node. The first contact of
//! a node with it reads it from there, and for a rank that serves itself who it is: one round trip
//! each, over the queue pair to the leader. The other ranks of the node find it in their
//! [notes](super::notes).

use super::{Card, Member, Part, Peer, Remote};
use crate::error::Result;
use crate::sync::{AtomicPtr, Ordering};
use crate::window::arena::Arena;
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
    /// who serves it
    pub peer: Arc<Peer>,
    /// where its control words begin
    pub block: Remote,
    data: OnceLock<Data>,
}

/// What it exposes.
pub struct Data {
    /// as it told, in memory of the node
    exposed: *const Descriptor,
    /// where the memory begins
    pub at: Remote,
    /// the descriptor, if the node has no room for it
    _own: Option<Box<Descriptor>>,
}

// SAFETY: what `exposed` points to is not changed any more.
unsafe impl Send for Data {}
// SAFETY: likewise.
unsafe impl Sync for Data {}

impl Data {
    /// What it exposes, as it told.
    #[inline]
    pub fn exposed(&self) -> &Descriptor {
        // SAFETY: a block of the window, one of its notes, or the own copy: as long as the window.
        unsafe { &*self.exposed }
    }
}

impl Targets {
    /// A target that was contacted before.
    #[inline]
    pub fn find(&self, rank: u32) -> Option<&Target> {
        // Acquire: pairs with the Release in `remember`.
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

    fn insert(&self, target: Target) -> &Target {
        let rank = target.rank;
        let mut known = self.known.lock();
        let found = ptr::from_ref(&**known.entry(rank).or_insert_with(|| Box::new(target)));
        self.remember(rank, found);
        // SAFETY: as in `look_up`.
        unsafe { &*found }
    }

    fn remember(&self, rank: u32, target: *const Target) {
        // Release: pairs with the Acquire in `find`.
        self.recent[rank as usize % RECENT].store(target.cast_mut(), Ordering::Release);
    }
}

impl Part {
    /// Waits until the buffers of all transfers may be used again.
    pub fn flush_local_all(&self) -> Result<()> {
        self.wide.peers.flush_local()
    }

    /// What this process knows of a rank.
    #[inline]
    pub fn target(&self, node: &Node, rank: u32) -> Result<&Target> {
        match self.targets.find(rank) {
            Some(target) => Ok(target),
            None => self.new_target(node, rank),
        }
    }

    /// The same, if it has had to do with it.
    #[inline]
    pub fn known_target(&self, rank: u32) -> Option<&Target> {
        self.targets.find(rank)
    }

    #[cold]
    fn new_target(&self, node: &Node, rank: u32) -> Result<&Target> {
        let member = self.wide.member(rank);
        let target = match &node.memory {
            Memory::Common(_) => {
                let (peer, block) = (self.wide.leader(member.node), self.block(member));
                Target { rank, member, peer, block, data: OnceLock::new() }
            }
            Memory::Owned(_) | Memory::Attached(_) => {
                let mut data = self.descriptor(node, rank, member)?;
                let Descriptor { remote, words, .. } = *data.exposed();
                data.at = remote;
                let peer = self.process(rank, member)?;
                Target { rank, member, peer, block: words, data: OnceLock::from(data) }
            }
        };
        Ok(self.targets.insert(target))
    }

    /// What a rank exposes.
    #[inline]
    pub fn data<'a>(&self, node: &Node, target: &'a Target) -> Result<&'a Data> {
        match target.data.get() {
            Some(data) => Ok(data),
            None => self.ask(node, target),
        }
    }

    /// The same of a rank of a window with common memory, at the first access to it.
    #[cold]
    fn ask<'a>(&self, node: &Node, target: &'a Target) -> Result<&'a Data> {
        let mut data = self.descriptor(node, target.rank, target.member)?;
        data.at = self.places.at(target.member.node).data.offset(data.exposed().offset as i64);
        Ok(target.data.get_or_init(|| data))
    }

    /// The descriptor of a rank, which is read once for all ranks of this node. Where the memory
    /// begins is the caller's to say.
    fn descriptor(&self, node: &Node, rank: u32, member: Member) -> Result<Data> {
        let cells = node.words.cells();
        let at = Remote::default();
        if member.node == self.wide.node {
            return Ok(Data { exposed: cells.descriptor(member.index), at, _own: None });
        }
        if let Some(exposed) = self.found.find(rank) {
            return Ok(Data { exposed, at, _own: None });
        }
        let from = self.block(member).offset(cells.far_bytes() as i64);
        // SAFETY: the bits of a descriptor are all values.
        let read = unsafe { fetch::<Descriptor>(&self.wide.leader(member.node), from) }?;
        Ok(match self.found.note(rank, read) {
            Some(exposed) => Data { exposed, at, _own: None },
            None => {
                let own = Box::new(read);
                Data { exposed: &raw const *own, at, _own: Some(own) }
            }
        })
    }

    /// The process of a rank.
    pub fn owner(&self, rank: u32) -> Result<Arc<Peer>> {
        self.process(rank, self.wide.member(rank))
    }

    fn process(&self, rank: u32, member: Member) -> Result<Arc<Peer>> {
        let card = self.card(rank, member)?;
        Ok(self.wide.peers.get(member, || self.wide.nic.peer(&card)))
    }

    /// Who a rank is, which has said so. It is read once for all ranks of this node.
    fn card(&self, rank: u32, member: Member) -> Result<Card> {
        if member.node == self.wide.node {
            return Ok(self.wide.near.process(member.index).card());
        }
        if let Some(card) = self.wide.cards.find(rank) {
            // SAFETY: a note of the communicator.
            return Ok(unsafe { *card });
        }
        let at = Arena::card_offset(member.index) as i64;
        let first = self.wide.infos.at(member.node).first;
        // SAFETY: the bits of a card are all values.
        let card = unsafe { fetch::<Card>(&self.wide.leader(member.node), first.offset(at)) }?;
        self.wide.cards.note(rank, card);
        Ok(card)
    }

    /// What a rank exposes, and its number on this node if it is here.
    pub fn exposed_by(&self, node: &Node, rank: u32) -> Result<(Option<u32>, Descriptor)> {
        let target = self.target(node, rank)?;
        Ok((self.near_index(rank), *self.data(node, target)?.exposed()))
    }

    /// The number of a rank among those of this node, if it is one of them.
    pub fn near_index(&self, rank: u32) -> Option<u32> {
        let member = self.wide.member(rank);
        (member.node == self.wide.node).then_some(member.index)
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
