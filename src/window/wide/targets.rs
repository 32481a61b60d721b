//! The targets of a window over many nodes: what this process knows of the ranks that it has had to
//! do with, found at the first access and then without a lock. Nothing is kept of the others.
//!
//! One process serves a rank, and all that is sent to that rank takes the queue pair to it, so that
//! it stays in order: the leader of its node where the window's memory is the node's, else the rank
//! itself. What a rank exposes says its descriptor, in the memory of its node. The first contact of
//! a node with it reads it from there, and for a rank that serves itself who it is: one round trip
//! each, over the queue pair to the leader. The other ranks of the node find it in their
//! [notes](super::notes).

use super::{Contact, Member, Part, Peer, Remote};
use crate::error::Result;
use crate::window::arena::Arena;
use crate::window::blocks::Descriptor;
use crate::window::{Memory, Node};
use core::mem::MaybeUninit;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

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
    /// taken by the thread of this process that takes its accumulate lock with several elements.
    /// Threads may as well meet in the queue of the lock, and those of other calls do; but there
    /// each pass of the lock is some requests and waits, and here it is none
    pub accumulating: Mutex<()>,
}

/// What it exposes.
pub struct Data {
    told: Told,
    /// where the memory begins
    pub at: Remote,
}

impl Data {
    /// What it exposes, as it told.
    #[inline]
    pub fn exposed(&self) -> &Descriptor {
        self.told.descriptor()
    }
}

/// The descriptor of a rank.
enum Told {
    /// in a block of the window, or one of its notes
    There(*const Descriptor),
    /// where the node has no room for it
    Own(Box<Descriptor>),
}

// SAFETY: what a pointer points to is not changed any more.
unsafe impl Send for Told {}
// SAFETY: likewise.
unsafe impl Sync for Told {}

impl Told {
    #[inline]
    fn descriptor(&self) -> &Descriptor {
        match self {
            // SAFETY: blocks and notes stay as long as the window.
            Told::There(there) => unsafe { &**there },
            Told::Own(own) => own,
        }
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
        self.targets.get(rank, || self.new_target(node, rank))
    }

    /// The same, if it has had to do with it.
    #[inline]
    pub fn known_target(&self, rank: u32) -> Option<&Target> {
        self.targets.find(rank)
    }

    #[cold]
    fn new_target(&self, node: &Node, rank: u32) -> Result<Target> {
        let member = self.wide.member(rank);
        let accumulating = Mutex::default();
        Ok(match &node.memory {
            Memory::Common(_) => {
                let (peer, block) = (self.wide.leader(member.node), self.block(member));
                Target { rank, member, peer, block, data: OnceLock::new(), accumulating }
            }
            Memory::Owned(_) | Memory::Attached(_) => {
                let told = self.descriptor(node, rank, member)?;
                let Descriptor { remote: at, words: block, .. } = *told.descriptor();
                let peer = self.process(rank, member)?;
                let data = OnceLock::from(Data { told, at });
                Target { rank, member, peer, block, data, accumulating }
            }
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

    /// The same of a rank of a window with common memory, at the first access to it.
    #[cold]
    fn ask<'a>(&self, node: &Node, target: &'a Target) -> Result<&'a Data> {
        let told = self.descriptor(node, target.rank, target.member)?;
        let first = self.places.at(target.member.node).data;
        let at = first.offset(told.descriptor().offset as i64);
        Ok(target.data.get_or_init(|| Data { told, at }))
    }

    /// The descriptor of a rank, which is read once for all ranks of this node.
    fn descriptor(&self, node: &Node, rank: u32, member: Member) -> Result<Told> {
        let cells = node.words.cells();
        if member.node == self.wide.node {
            return Ok(Told::There(cells.descriptor(member.index)));
        }
        if let Some(note) = self.found.find(rank) {
            return Ok(Told::There(note));
        }
        let from = self.block(member).offset(cells.far_bytes() as i64);
        // SAFETY: the bits of a descriptor are all values.
        let read = unsafe { fetch::<Descriptor>(&self.wide.leader(member.node), from) }?;
        Ok(match self.found.note(rank, read) {
            Some(note) => Told::There(note),
            None => Told::Own(Box::new(read)),
        })
    }

    /// The process of a rank.
    pub fn owner(&self, rank: u32) -> Result<Arc<Peer>> {
        self.process(rank, self.wide.member(rank))
    }

    fn process(&self, rank: u32, member: Member) -> Result<Arc<Peer>> {
        let contact = self.contact(rank, member)?;
        Ok(self.wide.peers.get(member, || self.wide.nic.peer(&contact, self.wide.secret)))
    }

    /// Who a rank is, which has said so. It is read once for all ranks of this node.
    fn contact(&self, rank: u32, member: Member) -> Result<Contact> {
        if member.node == self.wide.node {
            return Ok(self.wide.near.process(member.index).contact());
        }
        if let Some(contact) = self.wide.contacts.find(rank) {
            // SAFETY: a note of the communicator.
            return Ok(unsafe { *contact });
        }
        let at = Arena::card_offset(member.index) as i64;
        let first = self.wide.infos.at(member.node).first;
        // SAFETY: the bits of a contact are all values.
        let contact =
            unsafe { fetch::<Contact>(&self.wide.leader(member.node), first.offset(at)) }?;
        self.wide.contacts.note(rank, contact);
        Ok(contact)
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
