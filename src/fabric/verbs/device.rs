//! The RDMA device of this process: its port, the memory that is registered with it, and the ends
//! of connections. What is sent over them is decided elsewhere. Invariant: an end whose other end
//! answers stays.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use super::accepted::Pairs;
use super::connect::{self, End};
use super::limits;
use super::link::Link;
use super::port::Port;
use super::registrations::Registrations;
use crate::config::Verbs;
use crate::error::Result;
use crate::sync::{AtomicU64, Ordering};
use crate::sys::ibverbs::Region;
use crate::sys::ibverbs::verbs::IBV_ACCESS_LOCAL_WRITE;

/// The RDMA device of this process.
pub struct Device {
    /// target's ends of connections: queue pairs that other processes send to
    accepted: Pairs,
    registrations: Registrations,
    port: Port,
    randoms: (RandomState, AtomicU64),
}

impl Device {
    /// Opens the device that the settings select.
    pub fn open(settings: &Verbs) -> Result<Device> {
        Device::on(Port::open(settings)?)
    }

    /// Makes a device of an opened port.
    pub fn on(port: Port) -> Result<Device> {
        Ok(Device {
            accepted: Pairs::new(&port.domain)?,
            registrations: Registrations::new(&port.domain),
            port,
            randoms: (RandomState::new(), AtomicU64::new(1)),
        })
    }

    /// The port.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// The memory of the user that is registered.
    pub fn registrations(&self) -> &Registrations {
        &self.registrations
    }

    /// Registers memory of the road itself, which the device may read and write.
    pub fn register(&self, at: u64, bytes: u64) -> Result<Arc<Region>> {
        limits::register(&self.port.domain, at, bytes, IBV_ACCESS_LOCAL_WRITE)
    }

    /// Makes the origin's end of a connection, with room for `places` requests if the device
    /// allows so many. Nothing may be posted before [`Device::connect`].
    pub fn begin(&self, places: usize) -> Result<(Link, End)> {
        connect::origin(&self.port, places, self.packet())
    }

    /// Connects the origin's end `own` of a connection to the target's end.
    pub fn connect(&self, link: &Link, own: &End, other: &End) -> Result<()> {
        connect::finish(&self.port, link.pair(), own, other)
    }

    /// Makes the target's end of a connection for an origin. It stays as long as the origin
    /// answers.
    pub fn accept(&self, origin: &End) -> Result<End> {
        let (port, completions) = (&self.port, self.accepted.completions());
        let (pair, end) = connect::accept(port, completions, origin, self.packet())?;
        self.accepted.add(pair, end.packet(), origin.reads());
        Ok(end)
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

    /// Number of the first packet of an end.
    fn packet(&self) -> u32 {
        // Relaxed: only uniqueness matters.
        let count = self.randoms.1.fetch_add(1, Ordering::Relaxed);
        self.randoms.0.hash_one(count) as u32 & 0x00ff_ffff
    }
}
