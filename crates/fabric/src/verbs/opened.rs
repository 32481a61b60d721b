//! The RDMA device of this process: its port, the memory that is registered with it, and the ends
//! of connections. Other modules decide what is sent over them. Invariant: an end of a connection
//! stays as long as the other end answers.

use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use super::accepted::Pairs;
use super::connect::{self, VerbsEnd};
use super::link::VerbsLink;
use super::port::Port;
use super::registrations::{Registrations, VerbsRegion};
use crate::config::Verbs;
use crate::error::Result;
use crate::number::Number;
use crate::request::END_BYTES;
use crate::sync::{AtomicU64, Ordering};
use crate::sys::ibverbs::QueuePair;

/// The RDMA device of this process.
pub struct VerbsDevice {
    /// target's ends of connections: queue pairs that other processes send to
    accepted: Pairs,
    /// the memory that is registered
    pub registrations: Registrations,
    /// its port
    pub port: Port,
    randoms: (RandomState, AtomicU64),
}

impl VerbsDevice {
    /// Opens the device that the settings select.
    pub fn open(settings: &Verbs) -> Result<VerbsDevice> {
        VerbsDevice::on(Port::open(settings)?)
    }

    /// Makes a device of an opened port.
    pub fn on(port: Port) -> Result<VerbsDevice> {
        Ok(VerbsDevice {
            accepted: Pairs::new(&port.domain)?,
            registrations: Registrations::new(&port.domain),
            port,
            randoms: (RandomState::new(), AtomicU64::new(1)),
        })
    }

    /// Registers memory of the transport itself, which the device may read and write.
    pub fn register(&self, at: u64, bytes: u64) -> Result<VerbsRegion> {
        self.registrations.register(at, bytes)
    }

    /// Makes the origin's end of a connection, with room for `places` requests, or for fewer if the
    /// device does not allow as many.
    pub fn begin(&self, places: usize) -> Result<VerbsOpening<'_>> {
        let (pair, own) = connect::origin(&self.port, places, self.psn())?;
        Ok(VerbsOpening { port: &self.port, pair, own })
    }

    /// Makes the target's end of a connection for the end of an origin, and returns it. It stays as
    /// long as the origin answers.
    pub fn accept(&self, origin: &[u8; END_BYTES]) -> Result<[u8; END_BYTES]> {
        let (origin, completions) = (VerbsEnd::from(origin), self.accepted.completions());
        let (pair, end) = connect::accept(&self.port, completions, &origin, self.psn())?;
        self.accepted.add(pair, end.psn, origin.reads);
        Ok(end.bytes())
    }

    /// Checks from time to time whether the origins of accepted connections still answer, without
    /// waiting. Returns the time of the next call.
    pub fn poll_accepted(&self, now: Instant) -> Option<Instant> {
        self.accepted.poll(&self.port, now)
    }

    /// Number of accepted connections.
    pub fn accepted(&self) -> u64 {
        self.accepted.count()
    }

    /// Returns the first packet sequence number (PSN) of an end, at random.
    fn psn(&self) -> u32 {
        // Relaxed: only uniqueness matters.
        let count = self.randoms.1.fetch_add(1, Ordering::Relaxed);
        self.randoms.0.hash_one(count).low_u32() & 0x00ff_ffff
    }
}

/// The origin's end of a connection whose other end is not known yet.
pub struct VerbsOpening<'a> {
    port: &'a Port,
    pair: QueuePair,
    own: VerbsEnd,
}

impl VerbsOpening<'_> {
    /// The end as the target needs to know it.
    pub fn end(&self) -> [u8; END_BYTES] {
        self.own.bytes()
    }

    /// Connects to the target's end.
    pub fn connect(self, target: &[u8; END_BYTES]) -> Result<VerbsLink> {
        let target = VerbsEnd::from(target);
        connect::finish(self.port, &self.pair, &self.own, &target)?;
        let library = self.port.domain.device().library();
        Ok(VerbsLink::new(self.pair, library, target.order, self.port.sges.1))
    }
}
