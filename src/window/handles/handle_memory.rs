//! The memory of a handle: how this process reaches it, and the end of its exposure. The protocol
//! is in `epoch::memory_handles`.

use super::handle_records::{NearRecord, OwnRecord};
use super::packed::{Packed, secret_of};
use crate::epoch::memory_handles::{
    Announced, Fences, SeenAnnouncements, announce, announce_among, is_valid, sees, under_way,
};
use crate::error::{Error, Result};
use crate::fabric::cma::Gathering;
use crate::fabric::layout::{self, ANNOUNCED, ANNOUNCED_WORDS};
use crate::fabric::location::{Distant, Location, Unmapped};
use crate::fabric::net::{Exposed, Peer, Wire};
use crate::fabric::remote::{Addressed, Bytes, Network, Remote};
use crate::fabric::{Fetch, WordAt, WordId};
use crate::memory::own_ranges::OwnRange;
use crate::memory::{heap, maps};
use crate::messages;
use crate::mpi::Host;
use crate::number::Number;
use crate::rank_numbers::{Rank, RankOnNode};
use crate::sync::{AtomicU64, Ordering, full_fence, spin_hint};
use crate::sys::membarrier;
use crate::sys::secret::Secret;
use crate::sys::segment::Mapping;
use crate::window::address::{By, Reach};
use crate::window::{LocalWindow, Window, library_loads};
use core::ptr;
use parking_lot::Mutex;
use std::sync::Arc;

const WORDS: usize = ANNOUNCED_WORDS as usize;
/// Looks of an owner at the announcements before it yields, and from yield to yield before it asks
/// whether processes have ended.
const LOOKS: u32 = 100;

const WITHDRAWN: Error = Error::Wrong(&messages::MEM_WITHDRAWN);

/// The memory of a handle.
pub struct HandleMemory {
    /// its window
    pub window: &'static Window,
    /// what the packed handle says
    pub packed: Packed,
    /// how this process reaches it, if its owner is on this node
    near: Option<Near>,
    fences: Fences,
    /// what the owner keeps, until the memory is withdrawn
    own: Mutex<Option<Own>>,
    is_own: bool,
}

/// Memory of an owner on this node.
struct Near {
    validity: *const AtomicU64,
    at: NearMemory,
    _record: Option<NearRecord>,
}

/// How loads and stores, or the kernel, reach memory of this node.
enum NearMemory {
    /// private memory of this process
    Private(*mut u8),
    /// mapped here: memory of this process, or of another one by a mapping that is kept
    Mapped { at: *mut u8, _map: Option<Arc<Mapping>> },
    /// private memory of another process
    Process(RankOnNode),
}

/// What an owner keeps. The fields end in this order.
struct Own {
    /// the exposure to other nodes
    _exposed: Option<Exposed>,
    _range: Option<OwnRange>,
    record: OwnRecord,
}

// SAFETY: the addresses are of shared memory, which is reached by copies and atomics only.
unsafe impl Send for HandleMemory {}
// SAFETY: as for `Send`.
unsafe impl Sync for HandleMemory {}

/// The parts of a handle of mapped memory that a fast-path call uses.
pub struct MappedParts {
    /// the first byte
    pub at: *mut u8,
    /// the validity
    pub validity: *const AtomicU64,
    /// the word in which this process announces
    pub announced: *const AtomicU64,
    /// the word of the owner with the pass of this rank
    pub pass: *const AtomicU64,
}

impl LocalWindow {
    /// Returns the secret of the handles of this window.
    fn secret_of_handles(&self) -> Secret {
        secret_of(match self.wide.as_deref() {
            Some(part) => part.secret_of_handles(),
            None => self.blocks.descriptor(RankOnNode::LEADER).remote,
        })
    }

    /// Returns the word of an index in which a rank of this node announces accesses.
    fn announced(&self, rank: RankOnNode, index: usize) -> &AtomicU64 {
        let word = WordId(ANNOUNCED.0 + index.to_u32());
        self.blocks.word(WordAt { rank: rank.in_node_words(), word })
    }

    /// Returns the transport, if a device carries requests out that no process of the target sees.
    fn device(&self) -> Option<&'static Wire> {
        Some(self.wide.as_deref()?.wide.wire).filter(|wire| !wire.is_served())
    }
}

impl HandleMemory {
    /// Exposes memory of this process, for a new handle.
    pub fn expose(window: &'static Window, base: u64, size: i64) -> Result<HandleMemory> {
        // Other processes access it, whatever happens to a duplicate.
        let window = window.source();
        let node = dynamic(window)?;
        let wrong = Error::Argument(&messages::MEM_SIZE, size);
        let bytes = u64::try_from(size).map_err(|_| wrong.clone())?;
        base.checked_add(bytes).filter(|end| *end <= i64::MAX as u64).ok_or(wrong)?;
        if base == 0 && bytes > 0 {
            return Err(Error::Wrong(&messages::MEM_NULL));
        }
        let last = base + bytes.max(1) - 1;
        if bytes > 0
            && library_loads::gpu().is_some_and(|gpu| gpu.is_device(base) || gpu.is_device(last))
        {
            return Err(Error::Wrong(&messages::REGION_OF_GPU));
        }
        let place = heap::find(base, bytes).filter(|_| bytes > 0);
        let is_of_heap = |address| heap::find(address, 1).is_some();
        if place.is_none() && bytes > 0 && (is_of_heap(base) || is_of_heap(last)) {
            return Err(Error::Wrong(&messages::MEM_MIXED));
        }
        // Added before another rank can know the memory.
        let range = if place.is_some() { None } else { OwnRange::new(base, bytes) };
        let record = OwnRecord::take(node.device())?;
        record.describe(place);
        let at = ptr::with_exposed_provenance_mut::<u8>(base.to_usize());
        let wire = node.wide.as_deref().map(|part| part.wide.wire);
        let exposed = wire.map(|wire| wire.expose_by_handle(at, bytes)).transpose()?;
        let key = exposed.as_ref().map_or(0, |exposed| exposed.remote().key);
        let fences = !membarrier::registered();
        let packed = Packed {
            rank: node.rank,
            fences,
            base,
            bytes,
            generation: record.generation,
            key,
            record: record.remote,
            place: record.place,
        };
        add(node, &record, record.additions().0)?;
        let at = match place {
            Some(_) => NearMemory::Mapped { at, _map: None },
            None => NearMemory::Private(at),
        };
        let near = Near { validity: record.validity(), at, _record: None };
        Ok(HandleMemory {
            window,
            packed,
            near: Some(near),
            fences: fences_of(fences),
            own: Mutex::new(Some(Own { _exposed: exposed, _range: range, record })),
            is_own: true,
        })
    }

    /// Makes a handle of a packed one.
    pub fn unpack(
        window: &'static Window,
        bytes: &[u8; super::packed::BYTES],
    ) -> Result<HandleMemory> {
        let node = dynamic(window)?;
        let packed = Packed::unpack(bytes, node.secret_of_handles(), node.size)?;
        let index = node.near_index(packed.rank);
        let near = index.map(|index| Near::of(&packed, node, index)).transpose()?;
        let fences = fences_of(packed.fences || !membarrier::registered());
        Ok(HandleMemory { window, packed, near, fences, own: Mutex::new(None), is_own: false })
    }

    /// Returns the packed handle.
    pub fn pack(&self) -> [u8; super::packed::BYTES] {
        self.packed.pack(self.node().secret_of_handles())
    }

    /// Whether this process has exposed the memory by this handle.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// The rank that has exposed the memory.
    pub fn rank(&self) -> Rank {
        self.packed.rank
    }

    /// The part of its window that this process has.
    pub fn node(&self) -> &'static LocalWindow {
        self.window.local().expect("checked when the handle was made")
    }

    /// Where loads and stores of this process reach the memory; null: nowhere.
    pub fn mapped(&self) -> *mut u8 {
        match self.near.as_ref().map(|near| &near.at) {
            Some(NearMemory::Mapped { at, .. } | NearMemory::Private(at)) => *at,
            _ => ptr::null_mut(),
        }
    }

    /// Returns what a fast-path call uses, if the memory is mapped, no fence is needed,
    /// and its window has no attributes.
    pub fn mapped_parts(&self) -> Option<MappedParts> {
        let Near { validity, at: NearMemory::Mapped { at, .. }, .. } = self.near.as_ref()? else {
            return None;
        };
        let node = self.node();
        let announced = ptr::from_ref(node.announced(node.arena().rank, 0));
        let index = node.near_index(self.rank())?;
        let pass = || {
            let bit = layout::bit_of(node.arena().rank.in_node_words());
            let word = layout::pass(bit.0, node.size);
            node.blocks.word(WordAt { rank: index.in_node_words(), word })
        };
        // A window over several nodes has no bit of a pass, so any word will do.
        let pass = if node.spans_nodes() { announced } else { ptr::from_ref(pass()) };
        let parts = MappedParts { at: *at, validity: *validity, announced, pass };
        (self.fences == Fences::ByOwner && self.window.defaults.is_none()).then_some(parts)
    }

    /// Does `work` with the location of `reach` at displacement `disp`, in bytes.
    ///
    /// # Errors
    /// MPI_ERR_RMA_RANGE if a byte is outside, or if the memory was withdrawn.
    pub fn at<R>(
        &self,
        (disp, reach): (i64, Reach),
        by: By,
        work: impl FnOnce(Location<'_>) -> Result<R>,
    ) -> Result<R> {
        let (node, first) = (self.node(), self.find(disp, reach)?);
        if let Some(near) = &self.near
            && (by == By::Own || !node.spans_nodes())
        {
            let _announced = self.announce(node);
            // SAFETY: the record is mapped as long as this handle.
            let validity = unsafe { &*near.validity };
            if !sees(validity, self.packed.generation, self.fences) {
                return Err(WITHDRAWN);
            }
            return work(near.location(node, self.packed.base, first));
        }
        let peer = node.peer(self.rank())?;
        let at = Remote { at: self.packed.base + first, key: self.packed.key };
        let location = || Location::Unmapped(Unmapped::Distant(Distant { peer, at }));
        if peer.at_target().is_some() {
            return work(location());
        }
        self.entered(peer, || work(location()))
    }

    /// Does `work` between an entry and the leave behind it (`epoch::memory_handles`).
    fn entered<R>(&self, peer: &Peer, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let validity = self.packed.record;
        let seen = peer.finish(peer.begin(validity, Fetch::Add(1))?)?;
        let done = match is_valid(seen, self.packed.generation) {
            true => work(),
            false => Err(WITHDRAWN),
        };
        peer.order();
        peer.post(validity, u64::MAX)?;
        done
    }

    /// Returns the offset of the first byte of `reach` at a displacement.
    pub fn find(&self, disp: i64, reach: Reach) -> Result<u64> {
        let first = i128::from(disp) + i128::from(reach.first);
        let (end, bytes) = (first + i128::from(reach.bytes), self.packed.bytes);
        match u64::try_from(first) {
            Ok(first) if end <= i128::from(bytes) => Ok(first),
            _ => Err(Error::OutsideHandle { rank: self.rank(), first, end, bytes }),
        }
    }

    /// Announces an access of this thread; `None`: this thread has announced one that is not over.
    fn announce<'a>(&self, node: &'a LocalWindow) -> Option<Announced<'a>> {
        let own = node.arena().rank;
        if !self.window.epochs.has_threads() {
            return announce(node.announced(own, 0));
        }
        loop {
            // More threads than words: one of them has to end first.
            match announce_among((0..WORDS).map(|index| node.announced(own, index))) {
                None => std::thread::yield_now(),
                announced => return announced,
            }
        }
    }

    /// Ends the exposure when no process accesses the memory any more, because its window is freed.
    pub fn end(&self) {
        if let Some(own) = self.own.lock().take() {
            // A record that stays valid is not used again.
            let _ = take_generation(self.node(), &own.record);
        }
    }

    /// Withdraws the memory. When this returns, no access that began before touches it, and none
    /// begins.
    pub fn withdraw(&self) -> Result<()> {
        let node = self.node();
        let mut own = self.own.lock();
        let Some(kept) = own.take() else { return Ok(()) };
        // Stays if this fails: accesses may be under way.
        let kept = own.insert(kept);
        let record = &kept.record;
        take_generation(node, record)?;
        match self.fences {
            Fences::ByOwner => membarrier::barrier()?,
            Fences::Own => full_fence(),
        }
        // The one thread of this process accesses nothing now.
        let is_waited_for =
            |rank: &RankOnNode| *rank != node.arena().rank || self.window.epochs.has_threads();
        let ranks = RankOnNode::all(node.arena().size).filter(is_waited_for);
        ranks.for_each(|rank| wait_for(node, rank));
        if node.device().is_some() {
            wait_for_devices(node, record.validity());
        }
        drop(own.take());
        Ok(())
    }
}

/// Makes the validity of a handle that of none.
fn take_generation(node: &LocalWindow, record: &OwnRecord) -> Result<()> {
    match record.is_valid() {
        true => add(node, record, record.additions().1),
        false => Ok(()),
    }
}

/// Waits until the accesses that a rank of this node has announced are over, or the rank has died.
fn wait_for(node: &LocalWindow, rank: RankOnNode) {
    // Acquire: pairs with the Release at the end of an access.
    let word = |index| node.announced(rank, index).load(Ordering::Acquire);
    let seen = SeenAnnouncements::<WORDS>::of(word);
    let mut looks = 0_u32;
    while !seen.are_over(word) {
        looks = looks.wrapping_add(1);
        match looks % LOOKS {
            0 if node.arena().has_ended(rank) => return,
            0 => node.comm().progress(Host::get()),
            _ if looks < LOOKS => spin_hint(),
            _ => std::thread::yield_now(),
        }
    }
}

/// Waits until no access through a device is under way. A process that has died may have left its
/// entry behind: then no more is known.
fn wait_for_devices(node: &LocalWindow, validity: &AtomicU64) {
    let mut looks = 0_u32;
    // Acquire: the requests ahead of a leave are done.
    while under_way(validity.load(Ordering::Acquire)) > 0 {
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS) {
            if node.arena().check_dead().is_err() {
                return;
            }
            node.comm().progress(Host::get());
        }
        std::thread::yield_now();
    }
}

/// Adds to a validity of this process, in the way in which all change it.
fn add(node: &LocalWindow, record: &OwnRecord, value: u64) -> Result<()> {
    if node.device().is_none() {
        // Release: what the record says comes before. Acquire: accesses come behind a withdrawal.
        record.validity().fetch_add(value, Ordering::AcqRel);
        return Ok(());
    }
    full_fence(); // the device does not see what this processor has not stored yet
    let peer = node.peer(node.rank)?;
    peer.finish(peer.begin(record.remote, Fetch::Add(value))?).map(drop)
}

fn fences_of(own: bool) -> Fences {
    if own { Fences::Own } else { Fences::ByOwner }
}

/// Returns the part of a window that this process has, if handles may be for it.
fn dynamic(window: &'static Window) -> Result<&'static LocalWindow> {
    let node = window.local().ok_or(Error::Wrong(&messages::NO_HANDLES))?;
    node.regions().map(|_| node)
}

impl Near {
    /// Finds the memory of a packed handle whose owner is a rank of this node.
    fn of(packed: &Packed, node: &LocalWindow, index: RankOnNode) -> Result<Near> {
        if index == node.arena().rank {
            let at = ptr::with_exposed_provenance_mut::<u8>(packed.base.to_usize());
            let validity = ptr::with_exposed_provenance(packed.record.at.to_usize());
            let is_mapped = heap::find(packed.base, packed.bytes).is_some() && packed.bytes > 0;
            let at = match is_mapped {
                true => NearMemory::Mapped { at, _map: None },
                false => NearMemory::Private(at),
            };
            return Ok(Near { validity, at, _record: None });
        }
        let record = NearRecord::map(&packed.place)?;
        let validity = ptr::from_ref(record.validity());
        let is_valid = || is_valid(record.validity().load(Ordering::Acquire), packed.generation);
        let at = match record.place(packed.bytes, is_valid)? {
            None => NearMemory::Process(index),
            Some(place) => {
                let map = maps::map(&place.name)?;
                let at = map.base().wrapping_add(place.offset.to_usize());
                NearMemory::Mapped { at, _map: Some(map) }
            }
        };
        Ok(Near { validity, at, _record: Some(record) })
    }

    fn location<'a>(&self, node: &'a LocalWindow, base: u64, first: u64) -> Location<'a> {
        match &self.at {
            NearMemory::Private(at) => Location::Own(*at).offset(first.cast_signed()),
            NearMemory::Mapped { at, .. } => Location::Mapped(*at).offset(first.cast_signed()),
            NearMemory::Process(index) => {
                // The memory may be withdrawn when this returns, so no put may stay pending.
                let process = Gathering::nothing(node.arena().memory_of(*index));
                Location::Unmapped(Unmapped::Process(process, base + first))
            }
        }
    }
}
