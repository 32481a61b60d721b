//! Registered memory of this process by address: memory exposed to other processes, allocations
//! whose end is announced, and other buffers of the user while operations use them. Once the user
//! learns that an operation is done, its buffer may be unmapped, and other memory may be mapped at
//! its address. So the registration of a buffer ends there (`sweep`), while that of an allocation
//! lasts until the allocation is freed (`deregister`). Invariant: a region that a request names
//! lives until the request is done, because the request holds it.

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

/// Finds the allocation that contains a number of bytes (second argument) at an address (first
/// argument). Returns its address and its length. The owner of the allocation calls
/// [`Registrations::deregister`] before it ends.
pub type Allocations = fn(u64, u64) -> Option<(u64, u64)>;

/// Memory that is registered; the registration ends with the last value for it.
pub type VerbsRegion = Arc<ibverbs::MemoryRegion>;

/// All registered memory except that of the transport itself.
pub struct Registrations {
    domain: Arc<Domain>,
    /// by its first byte and a number
    exposed: Mutex<BTreeMap<(u64, u64), VerbsRegion>>,
    numbers: AtomicU64,
    allocations: OnceLock<Allocations>,
    /// allocations that were used, by their first byte
    lasting: Mutex<BTreeMap<u64, VerbsRegion>>,
    buffers: Mutex<Vec<VerbsRegion>>,
    /// whether there are buffers to sweep
    any: AtomicBool,
    /// number of registrations of buffers so far
    registered: AtomicU64,
}

impl Registrations {
    /// Starts without registrations.
    pub fn new(domain: &Arc<Domain>) -> Registrations {
        Registrations {
            domain: domain.clone(),
            exposed: Mutex::default(),
            numbers: AtomicU64::new(0),
            allocations: OnceLock::new(),
            lasting: Mutex::default(),
            buffers: Mutex::default(),
            any: AtomicBool::new(false),
            registered: AtomicU64::new(0),
        }
    }

    /// Registers memory for other processes. Returns the number of the registration and the region.
    pub fn expose(&self, base: u64, bytes: u64) -> Result<(u64, VerbsRegion)> {
        // Without relaxed ordering: a flag must not overtake the data before it (decision 0005).
        let access = IBV_ACCESS_LOCAL_WRITE
            | IBV_ACCESS_REMOTE_WRITE
            | IBV_ACCESS_REMOTE_READ
            | IBV_ACCESS_REMOTE_ATOMIC;
        let region = limits::register(&self.domain, base, bytes, access)?;
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
        let access = if arriving { IBV_ACCESS_LOCAL_WRITE } else { 0 };
        let fits = |region: &&VerbsRegion| region.holds(at, bytes) && region.allows(access);
        {
            let exposed = self.exposed.lock();
            if let Some((_, region)) =
                exposed.range(..=(at, u64::MAX)).rev().find(|(_, region)| fits(region))
            {
                return Ok(region.clone());
            }
        }
        if let Some(region) = self.lasting(at, bytes) {
            return Ok(region);
        }
        let mut buffers = self.buffers.lock();
        if let Some(region) = buffers.iter().find(fits) {
            return Ok(region.clone());
        }
        if buffers.len() >= BUFFERS_MAX {
            buffers.retain(in_use);
        }
        // Whole pages are pinned anyway, and the next buffer may lie on the same pages.
        let first = at & !(page_bytes() - 1);
        let length = (at + bytes).next_multiple_of(page_bytes()) - first;
        let region = limits::register(&self.domain, first, length, access)
            .map_err(|error| fault(error, at))?;
        buffers.push(region.clone());
        // Relaxed: the thread that sweeps for this buffer is this one, or has synchronised with it.
        self.any.store(true, Ordering::Relaxed);
        // Relaxed: a count.
        self.registered.fetch_add(1, Ordering::Relaxed);
        Ok(region)
    }

    /// Sets the function that finds allocations. The first one that was set is used.
    pub fn set_allocations(&self, allocations: Allocations) {
        let _ = self.allocations.set(allocations);
    }

    /// Returns the region of the allocation that contains a buffer. The allocation is registered as
    /// a whole at its first use. If that fails, registering a part of it may still succeed.
    fn lasting(&self, at: u64, bytes: u64) -> Option<VerbsRegion> {
        let (base, length) = self.allocations.get()?(at, bytes)?;
        let mut lasting = self.lasting.lock();
        if let Some(region) = lasting.get(&base) {
            return Some(region.clone());
        }
        let region = limits::register(&self.domain, base, length, IBV_ACCESS_LOCAL_WRITE).ok()?;
        lasting.insert(base, region.clone());
        self.registered.fetch_add(1, Ordering::Relaxed);
        Some(region)
    }

    /// Ends the registration of an allocation, before it is freed.
    pub fn deregister(&self, base: u64) {
        self.lasting.lock().remove(&base);
    }

    /// Ends the registrations of buffers that no request uses, before the user learns that
    /// operations are done.
    pub fn sweep(&self) {
        // Acquire: pairs with the Release of another thread that has ended them.
        if self.any.load(Ordering::Acquire) {
            let mut buffers = self.buffers.lock();
            buffers.retain(in_use);
            self.any.store(!buffers.is_empty(), Ordering::Release);
        }
    }

    /// Number and bytes of the current registrations, and how often a buffer was registered.
    pub fn counts(&self) -> (u64, u64, u64) {
        let exposed = self.exposed.lock();
        let lasting = self.lasting.lock();
        let buffers = self.buffers.lock();
        let all = || exposed.values().chain(lasting.values()).chain(buffers.iter());
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
