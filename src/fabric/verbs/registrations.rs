//! Memory of this process by address, with the keys for the device: what was exposed to others,
//! allocations that say when they end, and other buffers of the user while operations use them.
//! Such a buffer may be unmapped as soon as the user is told that its operation is done, and
//! something else may lie at its address then; so its registration ends there (`sweep`), while that
//! of an allocation lasts until it is given back (`forget`). Invariant: a region that a request
//! names lives until the request is done, because the request holds it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::limits;
use crate::error::{Error, Result};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::sys::ibverbs::types::*;
use crate::sys::ibverbs::{Domain, Region};

/// Buffers that are remembered between two sweeps, beyond those in use.
const BUFFERS_MAX: usize = 64;
const PAGE: u64 = 4096;

/// Finds the allocation that holds so many bytes at an address: where it begins, and its length.
/// Its owner calls [`super::Nic::forget`] before it ends.
pub type Allocations = fn(u64, u64) -> Option<(u64, u64)>;

/// All registered memory but the pool's.
pub struct Registrations {
    domain: Arc<Domain>,
    /// by the first byte and a number
    exposed: Mutex<BTreeMap<(u64, u64), Arc<Region>>>,
    numbers: AtomicU64,
    allocations: OnceLock<Allocations>,
    /// allocations that were used, by their first byte
    lasting: Mutex<BTreeMap<u64, Arc<Region>>>,
    buffers: Mutex<Vec<Arc<Region>>>,
    /// whether there are buffers to sweep
    any: AtomicBool,
    /// how often a buffer was registered
    registered: AtomicU64,
}

impl Registrations {
    /// Nothing yet.
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

    /// Registers memory for others, and returns its number.
    pub fn expose(&self, base: u64, bytes: u64) -> Result<(u64, Arc<Region>)> {
        // Without relaxed ordering: a flag must not pass the data before it (decision 0005).
        let access =
            ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
        let region = limits::register(&self.domain, base, bytes, access)?;
        // Relaxed: only its being unique counts.
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.exposed.lock().insert((base, number), region.clone());
        Ok((number, region))
    }

    /// Forgets what was exposed; requests that use it keep it until they are done.
    pub fn conceal(&self, base: u64, number: u64) {
        self.exposed.lock().remove(&(base, number));
    }

    /// The region for a buffer of the user, registered now if it is in none. For the device to
    /// write there, not only to read, `access` says so.
    pub fn buffer(&self, at: u64, bytes: u64, access: i32) -> Result<Arc<Region>> {
        let fits = |region: &&Arc<Region>| region.holds(at, bytes) && region.allows(access);
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
        // Whole pages are kept in place anyway, and the next buffer may lie on the same.
        let first = at & !(PAGE - 1);
        let length = (at + bytes).next_multiple_of(PAGE) - first;
        let region = limits::register(&self.domain, first, length, access)
            .map_err(|error| fault(error, at))?;
        buffers.push(region.clone());
        // Relaxed: the thread that sweeps for this buffer is this one, or has met it.
        self.any.store(true, Ordering::Relaxed);
        self.registered.fetch_add(1, Ordering::Relaxed);
        Ok(region)
    }

    /// Says who knows allocations. The first who says so is asked.
    pub fn set_allocations(&self, allocations: Allocations) {
        let _ = self.allocations.set(allocations);
    }

    /// The region of the allocation that holds a buffer, registered as a whole at its first use. If
    /// that is refused, less of it may not be.
    fn lasting(&self, at: u64, bytes: u64) -> Option<Arc<Region>> {
        let (base, length) = self.allocations.get()?(at, bytes)?;
        let mut lasting = self.lasting.lock();
        if let Some(region) = lasting.get(&base) {
            return Some(region.clone());
        }
        let region = limits::register(&self.domain, base, length, ACCESS_LOCAL_WRITE).ok()?;
        lasting.insert(base, region.clone());
        self.registered.fetch_add(1, Ordering::Relaxed);
        Some(region)
    }

    /// Ends the registration of an allocation, before it is given back.
    pub fn forget(&self, base: u64) {
        self.lasting.lock().remove(&base);
    }

    /// Ends the registrations of buffers that no request uses, before the user hears that
    /// operations are done.
    pub fn sweep(&self) {
        if self.any.load(Ordering::Relaxed) {
            let mut buffers = self.buffers.lock();
            buffers.retain(in_use);
            self.any.store(!buffers.is_empty(), Ordering::Relaxed);
        }
    }

    /// Number and bytes of what is registered now, and how often a buffer was.
    pub fn counts(&self) -> (u64, u64, u64) {
        let exposed = self.exposed.lock();
        let lasting = self.lasting.lock();
        let buffers = self.buffers.lock();
        let all = || exposed.values().chain(lasting.values()).chain(buffers.iter());
        let bytes = all().map(|region| region.bytes()).sum();
        (all().count() as u64, bytes, self.registered.load(Ordering::Relaxed))
    }
}

/// Whether anybody but the list has a region.
fn in_use(region: &Arc<Region>) -> bool {
    Arc::strong_count(region) > 1
}

/// The kernel's word for a bad address, as the user should hear it.
fn fault(error: Error, address: u64) -> Error {
    match error {
        Error::System { errno: libc::EFAULT, .. } => Error::OriginFault { address },
        other => other,
    }
}
