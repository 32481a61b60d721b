//! Tests of this transport by its own operations. The `cases` always run on a simulated device; on
//! a machine with a real one they also run there, by `cargo test fabric -- --ignored`. Several
//! [`Wire`]s of this process stand for several processes.

mod accepted;
mod cases;
mod contact;
mod device;
mod faked;
mod leases;
mod orders;
mod polling;
mod refused_requests;
mod results;

use std::sync::Arc;

use parking_lot::Mutex;

use super::counts::Counts;
use super::device::{Device, DeviceKind};
pub use super::*;
use crate::config::{Config, NetSettings, Verbs};
pub use crate::error::{Class, Error, Result};
use crate::fabric::Fetch;
pub use crate::fabric::contact::tests::{secret, until};
pub use crate::fabric::contact::{Contact, Secret};
pub use crate::fabric::device_order::DeviceOrder;
pub use crate::fabric::remote::{Network, Remote};
use crate::fabric::tcp::TcpDevice;
use crate::fabric::verbs::tests::{port, profile::Profile};
use crate::fabric::verbs::{self, Port};
use crate::sync::{AtomicU64, Ordering};

/// Makes one more process for a test.
pub type Open = fn() -> Wire;

/// Admits a process to the job of the tests.
fn of_the_job(wire: Wire) -> Wire {
    wire.admit(secret());
    wire
}

/// Makes a process on the device of this machine, or on those that TEST_DEVICES names, in turns.
pub fn on_device() -> Wire {
    static TURNS: AtomicU64 = AtomicU64::new(0);
    let mut settings = Config::get().net.clone();
    if let Ok(names) = std::env::var("TEST_DEVICES") {
        let names: Vec<&str> = names.split(',').collect();
        // Relaxed: only uniqueness matters.
        let turn = TURNS.fetch_add(1, Ordering::Relaxed) as usize;
        settings.verbs.device = Some(names[turn % names.len()].to_owned());
    }
    of_the_job(Wire::open(DeviceKind::Verbs, &settings).unwrap())
}

/// Returns what another process of the tests must know to reach this one.
pub fn address(wire: &Wire) -> (Contact, Secret) {
    (wire.contact().unwrap(), secret())
}

/// Lets one test at a time use the device.
pub fn turn() -> impl Drop {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
}

/// Makes a process of the job on an opened port.
fn on_port(port: Port, settings: &Verbs) -> Result<Wire> {
    let device = Box::new(verbs::VerbsDevice::on(port)?);
    let settings = NetSettings { verbs: settings.clone(), ..NetSettings::default() };
    Wire::on(Device::Verbs(device), &settings).map(of_the_job)
}

/// Makes a process on a simulated device with this profile.
fn on_profile(profile: &Profile, settings: &Verbs) -> Result<Wire> {
    on_port(port(profile, settings)?, settings)
}

/// Makes a process on a simulated device that keeps this order, and says so.
fn keeping(order: DeviceOrder) -> Wire {
    on_profile(&Profile::keeping(order), &Verbs::default()).unwrap()
}

/// Makes a process on the simulated device.
pub fn on_fake() -> Wire {
    keeping(DeviceOrder::RELIABLE)
}

/// Makes a process on a simulated device whose READs overtake WRITEs.
pub fn on_write_after_write() -> Wire {
    keeping(DeviceOrder::WRITE_AFTER_WRITE)
}

/// Makes a process on a simulated device that keeps no order.
pub fn on_unordered() -> Wire {
    keeping(DeviceOrder::NONE)
}

/// Makes a process that is reached by TCP.
pub fn on_tcp() -> Wire {
    let device = Device::Tcp(TcpDevice::open());
    Wire::on(device, &NetSettings::default()).map(of_the_job).unwrap()
}

/// A process with memory for others. The fields are dropped in their order.
pub struct Side {
    exposed: Exposed,
    wire: Wire,
    words: Box<[AtomicU64]>,
}

impl Side {
    /// Makes a process with `words` words.
    pub fn new(open: Open, words: usize) -> Side {
        let words: Box<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let wire = open();
        let bytes = 8 * words.len() as u64;
        let exposed = wire.expose(words.as_ptr().cast_mut().cast(), bytes).unwrap();
        Side { exposed, wire, words }
    }

    /// Returns the peer for this process at another one.
    pub fn seen_by(&self, wire: &Wire) -> Arc<Peer> {
        wire.peer(&self.wire.contact().unwrap(), secret())
    }

    /// Address of word `index` for other processes.
    pub fn at(&self, index: usize) -> Remote {
        self.exposed.remote().offset(8 * index as i64)
    }

    /// Value of word `index` in this process.
    pub fn word(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Acquire)
    }
}

/// Collects peers that are waited for together.
pub fn together(peers: &[&Arc<Peer>]) -> Peers<usize> {
    let all = Peers::default();
    for (key, peer) in peers.iter().enumerate() {
        all.get(key, || Arc::clone(peer));
    }
    all
}

/// Puts a buffer. The test keeps it until it may be used again.
pub fn put(peer: &Peer, to: Remote, from: &[u64]) -> Result<()> {
    // SAFETY: the tests flush before they drop or change it.
    unsafe { peer.put(to, from.as_ptr().cast(), 8 * from.len() as u64) }
}

/// Gets into a buffer. The test reads it only after the data have arrived.
pub fn get(peer: &Peer, to: &mut [u64], from: Remote) -> Result<()> {
    // SAFETY: the tests flush before they drop or read it.
    unsafe { peer.get(to.as_mut_ptr().cast(), from, 8 * to.len() as u64) }
}

/// Whether nothing is under way. On a busy machine a wait may have sent a ping that is still under
/// way; the next flush waits for it.
pub fn is_settled(peer: &Peer) -> bool {
    (0..10).any(|_| {
        let idle = peer.is_idle();
        peer.flush().unwrap();
        idle
    })
}

/// Returns distinct numbers.
pub fn numbers(count: usize, salt: u64) -> Vec<u64> {
    (0..count as u64).map(|index| (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt).collect()
}
