//! The targets of a window over several nodes: records of the ranks that this process has accessed
//! or held. A record is made at the first access and found without a lock afterwards. Other ranks
//! have none.
//!
//! One process serves each rank: the leader of its node if the node owns the window's memory,
//! otherwise the rank itself. All operations on a rank go through the queue pair to that process,
//! which keeps them in order. A descriptor in the node's memory lists what a rank exposes. The
//! first process of a node that accesses the rank reads the descriptor over the queue pair to the
//! leader, and also the contact of a rank that serves itself: one round trip each. The other ranks
//! of its node find both in their [notes](crate::arena::wide::notes).

use super::WideWindow;
use super::target_records::{Data, KnownDescriptor, WideTarget};
use crate::arena::Arena;
use crate::arena::descriptor::Descriptor;
use crate::arena::wide::Member;
use crate::epoch::lock::unconfirmed_targets::UnconfirmedMarks;
use crate::error::Result;
use crate::fabric::net::{Contact, Peer};
use crate::fabric::remote::{Bytes, Remote, Transport};
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode};
use crate::window::quick_window::WideRecord;
use crate::window::{LocalWindow, Memory};
use core::mem::MaybeUninit;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

impl WideWindow {
    /// Returns the target for a rank, and contacts it at the first access.
    #[inline]
    pub fn target(&self, node: &LocalWindow, rank: Rank) -> Result<&WideTarget> {
        self.target_of(node, (rank, self.records.get_or_default(rank)))
    }

    /// Returns the target of a record, and contacts the rank at the first access.
    #[inline]
    pub fn target_of<'a>(
        &self,
        node: &LocalWindow,
        (rank, record): (Rank, &'a WideRecord),
    ) -> Result<&'a WideTarget> {
        match record.contacted() {
            Some(target) => Ok(target),
            None => self.contact_target(node, (rank, record)),
        }
    }

    /// Returns the target for a rank if this process has contacted the rank before.
    #[inline]
    pub fn known_target(&self, rank: Rank) -> Option<&WideTarget> {
        self.records.find(rank)?.contacted()
    }

    /// Returns the ranks that this process has contacted.
    pub fn contacted_ranks(&self) -> Vec<Rank> {
        let known = self.records.all().into_iter();
        known.filter_map(|(rank, record)| record.contacted().map(|_| rank)).collect()
    }

    #[cold]
    fn contact_target<'a>(
        &self,
        node: &LocalWindow,
        (rank, record): (Rank, &'a WideRecord),
    ) -> Result<&'a WideTarget> {
        let member = self.wide.member(rank);
        let (peer, block, data) = match &node.memory {
            Memory::Common(_) => {
                (self.wide.leader(member.node), self.block(member), OnceLock::new())
            }
            Memory::Owned(_) | Memory::Attached(_) => {
                let descriptor = self.descriptor(node, rank, member)?;
                let Descriptor { remote: at, words: block, .. } = *descriptor.get();
                let data = OnceLock::from(Data { descriptor, at });
                (self.process(rank, member)?, block, data)
            }
        };
        let (accumulating, unconfirmed) = (Mutex::default(), UnconfirmedMarks::default());
        let target = WideTarget { rank, member, peer, block, data, accumulating, unconfirmed };
        Ok(record.target.get_or_init(|| target))
    }

    /// Returns the memory that a target exposes.
    #[inline]
    pub fn data<'a>(&self, node: &LocalWindow, target: &'a WideTarget) -> Result<&'a Data> {
        match target.data.get() {
            Some(data) => Ok(data),
            None => self.read_data(node, target),
        }
    }

    /// Reads what a target exposes at the first access to it, in a window with common memory.
    #[cold]
    fn read_data<'a>(&self, node: &LocalWindow, target: &'a WideTarget) -> Result<&'a Data> {
        let descriptor = self.descriptor(node, target.rank, target.member)?;
        let first = self.place(target.member.node).data;
        let at = first.offset(descriptor.get().offset.cast_signed());
        Ok(target.data.get_or_init(|| Data { descriptor, at }))
    }

    /// Returns the descriptor of a rank, which is read once for all ranks of this node.
    fn descriptor(
        &self,
        node: &LocalWindow,
        rank: Rank,
        member: Member,
    ) -> Result<KnownDescriptor> {
        if member.node == self.wide.node {
            return Ok(KnownDescriptor::Shared(node.blocks.descriptor(member.index)));
        }
        if let Some(note) = self.found.find(rank) {
            return Ok(KnownDescriptor::Shared(note));
        }
        let from = self.block(member).offset(node.blocks.far_bytes().to_u64().cast_signed());
        // SAFETY: every bit pattern is a valid descriptor.
        let read = unsafe { fetch::<Descriptor>(&self.wide.leader(member.node), from) }?;
        Ok(match self.found.note(rank, read) {
            Some(note) => KnownDescriptor::Shared(note),
            None => KnownDescriptor::Copy(Box::new(read)),
        })
    }

    /// Returns the peer for the process of a rank.
    pub fn owner(&self, rank: Rank) -> Result<Arc<Peer>> {
        self.process(rank, self.wide.member(rank))
    }

    fn process(&self, rank: Rank, member: Member) -> Result<Arc<Peer>> {
        let contact = self.contact(rank, member)?;
        Ok(self.wide.peers.get(member, || self.wide.wire.connect(&(contact, self.wide.secret))))
    }

    /// Returns the contact of a rank that serves itself. It is read once for all ranks of this
    /// node.
    fn contact(&self, rank: Rank, member: Member) -> Result<Contact> {
        if member.node == self.wide.node {
            return Ok(self.wide.near.process(member.index).contact());
        }
        if let Some(contact) = self.wide.contacts.find(rank) {
            // SAFETY: a note is constant and lasts as long as the wide arena.
            return Ok(unsafe { *contact });
        }
        let at = Arena::contact_offset(member.index).cast_signed();
        let first = self.wide.info(member.node).first;
        // SAFETY: every bit pattern is a valid contact.
        let contact =
            unsafe { fetch::<Contact>(&self.wide.leader(member.node), first.offset(at)) }?;
        self.wide.contacts.note(rank, contact);
        Ok(contact)
    }

    /// Returns the index of a rank on this node, if it is on this node, and its descriptor.
    pub fn exposed_by(
        &self,
        node: &LocalWindow,
        rank: Rank,
    ) -> Result<(Option<RankOnNode>, Descriptor)> {
        let target = self.target(node, rank)?;
        Ok((self.near_index(rank), *self.data(node, target)?.descriptor.get()))
    }

    /// Returns the index of a rank among the ranks of this node, if it is one of them.
    pub fn near_index(&self, rank: Rank) -> Option<RankOnNode> {
        let member = self.wide.member(rank);
        (member.node == self.wide.node).then_some(member.index)
    }
}

/// Reads plain data from the memory of another process.
///
/// # Safety
/// Every bit pattern must be a valid `T`.
unsafe fn fetch<T: Copy>(peer: &Peer, at: Remote) -> Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: `value` has the size of a `T`, and is kept until the get has completed.
    unsafe { peer.get(value.as_mut_ptr().cast(), at, size_of::<T>().to_u64())? };
    peer.flush_local()?;
    // SAFETY: the value was zeroed and then written; the caller guarantees that every bit pattern
    // is a valid `T`.
    Ok(unsafe { value.assume_init() })
}
