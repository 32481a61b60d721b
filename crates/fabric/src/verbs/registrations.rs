//! Registered memory of this process by address: memory exposed to other processes, memory of the
//! library that origins use, and other buffers of the user while operations use them. Once the user
//! learns that an operation is done, its buffer may be unmapped, and other memory may be mapped at
//! its address. So the registration of a buffer ends there (`sweep`). Memory of the library
//! ([`LastingMemory`]) keeps its pages until the library gives it back. It stays registered until
//! then (`deregister`), or until the system refuses a registration (`evict`). Invariant: a region
//! that a request names lives until the request is done, because the request holds it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::limits;
use crate::error::{Error, Result};
use crate::number::Number;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::sys::ibverbs::verbs::*;
use crate::sys::ibverbs::{self, Domain};
use crate::sys::page_bytes;

/// Registrations of unused buffers that are kept between two sweeps.
const BUFFERS_MAX: usize = 64;
/// Memory of the library is registered in pieces of this size, counted from its begin, as far as it
/// is used. A registration takes all pages of the piece from the system.
const PIECE_BYTES: u64 = 2 << 20;

/// Finds memory of the library that contains a number of bytes (second argument) at an address
/// (first argument). Returns its address and its length. Its pages stay where they are until
/// [`Registrations::deregister`] is called for it.
pub type LastingMemory = fn(u64, u64) -> Option<(u64, u64)>;

/// Memory that is registered; the registration ends with the last value for it.
pub type VerbsRegion = Arc<ibverbs::MemoryRegion>;

/// All registered memory.
pub struct Registrations {
    domain: Arc<Domain>,
    /// by its first byte and a number
    exposed: Mutex<BTreeMap<(u64, u64), VerbsRegion>>,
    numbers: AtomicU64,
    lasting_memory: OnceLock<LastingMemory>,
    origins: Mutex<Origins>,
    /// whether there are buffers to sweep
    any: AtomicBool,
    /// number of registrations of memory of origins so far
    registered: AtomicU64,
}

/// Registered memory of origins.
#[derive(Default)]
struct Origins {
    /// memory of the library by its first byte, with the number of its last use. No region contains
    /// another one, so their ends are in the order of their begins
    lasting: BTreeMap<u64, (VerbsRegion, u64)>,
    uses: u64,
    buffers: Vec<VerbsRegion>,
}

impl Origins {
    /// Returns the region of memory of the library that contains these bytes.
    fn lasting(&mut self, at: u64, bytes: u64) -> Option<VerbsRegion> {
        let (_, (region, used)) = self.lasting.range_mut(..=at).next_back()?;
        if !region.holds(at, bytes) {
            return None;
        }
        self.uses += 1;
        *used = self.uses;
        Some(region.clone())
    }

    /// Adds a region of memory of the library in place of those that it contains.
    fn add(&mut self, base: u64, region: &VerbsRegion) {
        let end = base + region.bytes();
        self.lasting.retain(|at, (other, _)| *at < base || at + other.bytes() > end);
        self.uses += 1;
        self.lasting.insert(base, (region.clone(), self.uses));
    }

    /// Ends registrations that nothing uses: those of buffers, or otherwise that of memory of the
    /// library which was used longest ago. Returns whether there were any.
    fn evict(&mut self) -> bool {
        let before = self.buffers.len();
        self.buffers.retain(in_use);
        let unused = self.lasting.iter().filter(|(_, (region, _))| !in_use(region));
        let oldest = unused.min_by_key(|(_, (_, used))| *used).map(|(base, _)| *base);
        self.buffers.len() < before
            || oldest.is_some_and(|base| self.lasting.remove(&base).is_some())
    }
}

impl Registrations {
    /// Starts without registrations.
    pub fn new(domain: &Arc<Domain>) -> Registrations {
        Registrations {
            domain: domain.clone(),
            exposed: Mutex::default(),
            numbers: AtomicU64::new(0),
            lasting_memory: OnceLock::new(),
            origins: Mutex::default(),
            any: AtomicBool::new(false),
            registered: AtomicU64::new(0),
        }
    }

    /// Registers memory of the transport itself, which the device may read and write.
    pub fn register(&self, at: u64, bytes: u64) -> Result<VerbsRegion> {
        let make_room = || self.origins.lock().evict();
        self.register_by((at, bytes), IBV_ACCESS_LOCAL_WRITE, make_room)
    }

    /// Registers memory, again as long as the system refuses that and `make_room` ends another
    /// registration.
    fn register_by(
        &self,
        (at, bytes): (u64, u64),
        access: ibv_access_flags,
        mut make_room: impl FnMut() -> bool,
    ) -> Result<VerbsRegion> {
        loop {
            match limits::register(&self.domain, at, bytes, access) {
                Err(Error::Registration { .. }) if make_room() => {}
                registered => return registered,
            }
        }
    }

    /// Registers memory for other processes. Returns the number of the registration and the region.
    pub fn expose(&self, base: u64, bytes: u64) -> Result<(u64, VerbsRegion)> {
        // Without relaxed ordering: a flag must not overtake the data before it (decision 0005).
        let access = IBV_ACCESS_LOCAL_WRITE
            | IBV_ACCESS_REMOTE_WRITE
            | IBV_ACCESS_REMOTE_READ
            | IBV_ACCESS_REMOTE_ATOMIC;
        // Without the lock: large memory takes long.
        let make_room = || self.origins.lock().evict();
        let region = self.register_by((base, bytes), access, make_room)?;
        // Relaxed: only uniqueness matters.
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.exposed.lock().insert((base, number), region.clone());
        Ok((number, region))
    }

    /// Removes exposed memory; requests that use it keep its region until they are done.
    pub fn conceal(&self, base: u64, number: u64) {
        self.exposed.lock().remove(&(base, number));
    }

    /// Returns a region that contains a buffer of the user; registers the buffer if there is none.
    /// `arriving` says whether the device writes there or only reads.
    pub fn buffer(&self, at: u64, bytes: u64, arriving: bool) -> Result<VerbsRegion> {
        if let Some(region) = self.lasting(at, bytes) {
            return Ok(region);
        }
        let access = if arriving { IBV_ACCESS_LOCAL_WRITE } else { 0 };
        let fits = |region: &&VerbsRegion| region.holds(at, bytes) && region.allows(access);
        let mut origins = self.origins.lock();
        if let Some(region) = origins.buffers.iter().find(fits) {
            return Ok(region.clone());
        }
        if origins.buffers.len() >= BUFFERS_MAX {
            origins.buffers.retain(in_use);
        }
        // Whole pages are pinned anyway, and the next buffer may lie on the same pages.
        let first = at & !(page_bytes() - 1);
        let length = (at + bytes).next_multiple_of(page_bytes()) - first;
        let region = self
            .register_by((first, length), access, || origins.evict())
            .map_err(|error| fault(error, at))?;
        origins.buffers.push(region.clone());
        // Relaxed: the thread that sweeps for this buffer is this one, or has synchronised with it.
        self.any.store(true, Ordering::Relaxed);
        // Relaxed: a count.
        self.registered.fetch_add(1, Ordering::Relaxed);
        Ok(region)
    }

    /// Sets the function that finds memory of the library. The first one that was set is used.
    pub fn set_lasting_memory(&self, find: LastingMemory) {
        let _ = self.lasting_memory.set(find);
    }

    /// Returns a region that contains a buffer of the user and stays registered: exposed memory, or
    /// memory of the library, which is registered here if it is not yet.
    pub fn lasting(&self, at: u64, bytes: u64) -> Option<VerbsRegion> {
        {
            let exposed = self.exposed.lock();
            let mut before = exposed.range(..=(at, u64::MAX)).rev();
            if let Some((_, region)) = before.find(|(_, region)| region.holds(at, bytes)) {
                return Some(region.clone());
            }
        }
        let (base, length) = self.lasting_memory.get()?(at, bytes)?;
        let mut origins = self.origins.lock();
        if let Some(region) = origins.lasting(at, bytes) {
            return Some(region);
        }
        let first = (at - base) / PIECE_BYTES * PIECE_BYTES;
        let end = (at - base + bytes).next_multiple_of(PIECE_BYTES).min(length);
        let piece = (base + first, end - first);
        // If that is refused, the buffer alone may still be registered.
        let make_room = || origins.evict();
        let region = self.register_by(piece, IBV_ACCESS_LOCAL_WRITE, make_room).ok()?;
        origins.add(piece.0, &region);
        self.registered.fetch_add(1, Ordering::Relaxed);
        Some(region)
    }

    /// Ends the registrations of memory of the library, before it is given back.
    pub fn deregister(&self, base: u64, bytes: u64) {
        let is_elsewhere = |at: u64, region: &VerbsRegion| {
            at >= base.saturating_add(bytes) || at + region.bytes() <= base
        };
        self.origins.lock().lasting.retain(|at, (region, _)| is_elsewhere(*at, region));
    }

    /// Ends the registrations of buffers that no request uses, before the user learns that
    /// operations are done.
    pub fn sweep(&self) {
        // Acquire: pairs with the Release of another thread that has ended them.
        if self.any.load(Ordering::Acquire) {
            let buffers = &mut self.origins.lock().buffers;
            buffers.retain(in_use);
            self.any.store(!buffers.is_empty(), Ordering::Release);
        }
    }

    /// Number and bytes of the current registrations, and how often memory of an origin was
    /// registered.
    pub fn counts(&self) -> (u64, u64, u64) {
        let exposed = self.exposed.lock();
        let origins = self.origins.lock();
        let lasting = || origins.lasting.values().map(|(region, _)| region);
        let all = || exposed.values().chain(lasting()).chain(origins.buffers.iter());
        let bytes = all().map(|region| region.bytes()).sum();
        (all().count().to_u64(), bytes, self.registered.load(Ordering::Relaxed))
    }
}

/// Whether anything but the list holds the region.
fn in_use(region: &VerbsRegion) -> bool {
    Arc::strong_count(region) > 1
}

/// Turns the kernel's error for a bad address into the one that the user gets.
fn fault(error: Error, address: u64) -> Error {
    match error {
        Error::System { errno: libc::EFAULT, .. } => Error::OriginFault { address },
        other => other,
    }
}
