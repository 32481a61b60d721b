//! The records of memory handles: for each, its validity (`epoch::memory_handles`) and the segment
//! of its memory, in the heap of the owner, where other processes map it. Records are never given
//! back to the heap, because a handle of any age may lead to one; a later handle uses a free one
//! again, with another generation. Invariant: the segment of a record is changed only while its
//! validity has no generation.

use crate::epoch::memory_handles::{is_valid, valid, withdrawal};
use crate::error::{Error, Result};
use crate::fabric::net::{Exposed, Wire};
use crate::fabric::remote::{Addressed, Remote, Transport};
use crate::memory::heap::{self, HeapPlace, HeapRange};
use crate::memory::maps;
use crate::messages;
use crate::number::Number;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::sys::page_bytes;
use crate::sys::segment::{Mapping, Name};
use parking_lot::Mutex;
use std::sync::Arc;

/// A record, in memory that processes share. The validity is on a line of its own.
#[repr(C, align(128))]
struct Shared {
    validity: AtomicU64,
    _line: [u64; 7],
    /// the segment of the memory, as words of a name; all 0: none
    name: [AtomicU64; 5],
    /// the offset of the memory there
    offset: AtomicU64,
}

const BYTES: u64 = size_of::<Shared>() as u64;

/// Records that lie together.
struct Slab {
    range: HeapRange,
    /// its exposure to a device, and the key
    exposed: Option<(&'static Wire, Exposed)>,
    free: Vec<u64>,
}

static SLABS: Mutex<Vec<Slab>> = Mutex::new(Vec::new());

/// The generation of the next handle of this process.
static GENERATIONS: AtomicU64 = AtomicU64::new(1);
/// There are fewer generations than this.
const GENERATIONS_MAX: u64 = 1 << 40;

/// A record of this process, which a handle has.
pub struct OwnRecord {
    slab: usize,
    at: *const Shared,
    /// where the processes of this node find it
    pub place: HeapPlace,
    /// where a device finds it
    pub remote: Remote,
    /// the generation of its handle
    pub generation: u64,
}

// SAFETY: the record is shared memory that consists of atomics and is never given back.
unsafe impl Send for OwnRecord {}
// SAFETY: as for `Send`.
unsafe impl Sync for OwnRecord {}

impl OwnRecord {
    /// Takes a record for a new handle. `wire`: a device that reaches it, if one does.
    pub fn take(wire: Option<&'static Wire>) -> Result<OwnRecord> {
        // Relaxed: only uniqueness matters.
        let generation = GENERATIONS.fetch_add(1, Ordering::Relaxed);
        if generation >= GENERATIONS_MAX {
            return Err(Error::System { call: "FOMPI_Mem_expose", errno: libc::EOVERFLOW });
        }
        let mut slabs = SLABS.lock();
        let known = slabs.iter().position(|slab| slab.serves(wire) && !slab.free.is_empty());
        let index = known.map_or_else(|| new_slab(&mut slabs, wire), Ok)?;
        let slab = &mut slabs[index];
        let offset = slab.free.pop().expect("found above, or new") * BYTES;
        let at = slab.range.base().wrapping_add(offset.to_usize());
        let place = slab.range.place();
        let key = slab.exposed.as_ref().map_or(0, |(_, exposed)| exposed.remote().key);
        Ok(OwnRecord {
            slab: index,
            at: at.cast(),
            place: HeapPlace { offset: place.offset + offset, ..place },
            remote: Remote { at: at.expose_provenance().to_u64(), key },
            generation,
        })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: a record of the heap, zeroed when it was made, which consists of atomics.
        unsafe { &*self.at }
    }

    /// Its validity.
    pub fn validity(&self) -> &AtomicU64 {
        &self.shared().validity
    }

    /// Stores the segment of the memory, ahead of the generation.
    pub fn describe(&self, place: Option<HeapPlace>) {
        let HeapPlace { name, offset } = place.unwrap_or_default();
        let shared = self.shared();
        // Relaxed: readers look at the validity behind, whose store is a Release.
        for (word, value) in shared.name.iter().zip(name.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
        shared.offset.store(offset, Ordering::Relaxed);
    }

    /// Whether its handle is valid.
    pub fn is_valid(&self) -> bool {
        // Acquire: as in `epoch::memory_handles::sees`.
        is_valid(self.validity().load(Ordering::Acquire), self.generation)
    }

    /// What makes the handle valid, and what withdraws it, as additions to the validity.
    pub fn additions(&self) -> (u64, u64) {
        (valid(self.generation), withdrawal(self.generation))
    }
}

impl Drop for OwnRecord {
    fn drop(&mut self) {
        if self.is_valid() {
            return; // the device that changes it is lost
        }
        let mut slabs = SLABS.lock();
        let slab = &mut slabs[self.slab];
        let begin = slab.range.base().expose_provenance();
        slab.free.push((self.at.expose_provenance() - begin).to_u64() / BYTES);
    }
}

impl Slab {
    /// Whether a record of it may be for a handle that this device reaches.
    fn serves(&self, wire: Option<&'static Wire>) -> bool {
        match (wire, &self.exposed) {
            (None, _) => true,
            (Some(wire), Some((own, _))) => core::ptr::eq(wire, *own),
            (Some(_), None) => false,
        }
    }
}

/// Makes a slab. Returns its index.
fn new_slab(slabs: &mut Vec<Slab>, wire: Option<&'static Wire>) -> Result<usize> {
    let range = heap::take(page_bytes(), page_bytes())?;
    // SAFETY: memory of this length that was just allocated.
    unsafe { range.base().write_bytes(0, page_bytes().to_usize()) };
    let expose = |wire: &'static Wire| Ok((wire, wire.expose(range.base(), page_bytes())?));
    let exposed = wire.map(expose).transpose()?;
    slabs.push(Slab { range, exposed, free: (0..page_bytes() / BYTES).collect() });
    Ok(slabs.len() - 1)
}

/// A record of another process of this node, mapped here.
pub struct NearRecord {
    map: Arc<Mapping>,
    offset: u64,
}

impl NearRecord {
    /// Maps a record.
    pub fn map(place: &HeapPlace) -> Result<NearRecord> {
        let name = place.segment_of(BYTES)?;
        if !place.offset.is_multiple_of(BYTES) {
            return Err(Error::Wrong(&messages::DAMAGED_LOCATION));
        }
        Ok(NearRecord { map: maps::map(name)?, offset: place.offset })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the mapping has these bytes, at a multiple of their alignment, and they are
        // reached as atomics only.
        unsafe { &*self.map.base().add(self.offset.to_usize()).cast() }
    }

    /// Its validity, which is mapped as long as this record.
    pub fn validity(&self) -> &AtomicU64 {
        &self.shared().validity
    }

    /// Returns the segment of `bytes` bytes of memory of a handle and their offset there, if they
    /// lie in one. For a handle that `is_valid` says to be valid behind this too.
    pub fn place(&self, bytes: u64, is_valid: impl FnOnce() -> bool) -> Result<Option<HeapPlace>> {
        let shared = self.shared();
        // Relaxed: the check behind tells whether all are those of the handle.
        let words = shared.name.each_ref().map(|word| word.load(Ordering::Relaxed));
        let offset = shared.offset.load(Ordering::Relaxed);
        // Acquire: the check comes behind these loads.
        fence(Ordering::Acquire);
        let place = HeapPlace { name: Name::from_words(&words), offset };
        if place.name.bytes == 0 || !is_valid() {
            return Ok(None);
        }
        place.segment_of(bytes).map(|_| Some(place))
    }
}
