//! The road between nodes: memory of other processes over InfiniBand or RoCE, by reliable
//! connections, without a call of the target (decision 0005). A process has one [`Nic`] and a
//! [`Peer`] for each process that it contacts; the first operation connects, with the help of the
//! target's connection thread. Not for control words as protocols see them, which are made of these
//! operations elsewhere. Invariant: memory and queue pairs are O(processes contacted), and what is
//! under way at a time has a bound.

mod accepted;
mod bytes;
mod connect;
mod contact;
mod counts;
mod device;
mod gathered;
mod handshake;
mod incoming;
mod leases;
mod limits;
mod listener;
mod many;
mod outgoing;
mod peer;
mod peers;
mod pending;
mod pool;
mod probe;
mod queue;
mod registrations;
mod secret;
mod silence;
mod sockets;
#[cfg(test)]
pub mod tests;

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::config::{Config, Verbs};
use crate::error::{Error, Result};
use crate::sync::{AtomicU64, Ordering};
use crate::sys::ibverbs::Region;
use accepted::Pairs;
pub use bytes::Run;
pub use contact::Contact;
pub use counts::{Counts, Kinds};
use device::Device;
pub use leases::Lease;
use listener::Listener;
pub use many::WORDS_MAX;
pub use peer::{Peer, Ticket};
pub use peers::Peers;
pub use pending::Pending;
pub use pool::BLOCK_BYTES;
use pool::{Answers, Blocks};
pub use probe::{Notices, Probe};
pub use queue::Part;
pub use registrations::Allocations;
use registrations::Registrations;
pub use secret::Secret;

/// Memory of another process, as the device reaches it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// its address there
    pub at: u64,
    /// its key, 32 bits
    pub key: u64,
}

impl Remote {
    /// So many bytes further on.
    pub fn offset(self, by: i64) -> Remote {
        Remote { at: self.at.wrapping_add_signed(by), ..self }
    }
}

/// What the parts of the road share.
struct Core {
    /// queue pairs that other processes send to
    accepted: Pairs,
    registrations: Registrations,
    blocks: Blocks,
    answers: Answers,
    device: Device,
    peers: RwLock<Vec<Arc<Peer>>>,
    uid: u64,
    /// of the jobs that this process belongs to; the first is the one that it tells to others
    secrets: Mutex<Vec<Secret>>,
    /// what a message has at most, if not what the device allows
    message_bytes_max: AtomicU64,
    /// how long a first contact may take, in milliseconds
    contact_limit_ms: AtomicU64,
    randoms: (RandomState, AtomicU64),
    /// how many peers were lost
    losses: AtomicU64,
    notices: OnceLock<Notices>,
}

impl Core {
    fn new(device: Device) -> Result<Core> {
        let domain = device.domain.clone();
        let randoms = (RandomState::new(), AtomicU64::new(1));
        Ok(Core {
            accepted: Pairs::new(&domain)?,
            registrations: Registrations::new(&domain),
            blocks: Blocks::new(&domain)?,
            answers: Answers::new(&domain)?,
            message_bytes_max: AtomicU64::new(device.message_bytes_max.into()),
            device,
            contact_limit_ms: AtomicU64::new(outgoing::LIMIT.as_millis() as u64),
            peers: RwLock::default(),
            uid: RandomState::new().hash_one(std::process::id()),
            secrets: Mutex::default(),
            randoms,
            losses: AtomicU64::new(0),
            notices: OnceLock::new(),
        })
    }

    fn uid(&self) -> u64 {
        self.uid
    }

    fn random(&self) -> u64 {
        // Relaxed: only its being unique counts.
        self.randoms.0.hash_one(self.randoms.1.fetch_add(1, Ordering::Relaxed))
    }

    fn contact_limit(&self) -> Duration {
        // Relaxed: as for the longest message.
        Duration::from_millis(self.contact_limit_ms.load(Ordering::Relaxed))
    }

    fn message_bytes_max(&self) -> u64 {
        // Relaxed: it changes in tests alone, before there are messages.
        self.message_bytes_max.load(Ordering::Relaxed)
    }

    /// Takes completions of all peers that nobody else is looking at.
    fn poll_all(&self) {
        // Recursive: a thread that flushes all peers may come here on the way.
        for peer in self.peers.read_recursive().iter() {
            peer.try_poll();
        }
    }

    /// Reminds the device of what is under way to any peer, for who has waited long for something
    /// that requests hold.
    fn ping_all(&self) {
        for peer in self.peers.read_recursive().iter() {
            peer.try_ping();
        }
    }

    fn count_loss(&self) {
        // Release: pairs with the Acquire in `progress`.
        self.losses.fetch_add(1, Ordering::Release);
    }
}

/// The device of this process, and all that it is used with.
pub struct Nic {
    core: Arc<Core>,
    listener: Mutex<Option<Listener>>,
    interface: Option<String>,
}

static NIC: OnceLock<Result<Nic>> = OnceLock::new();

impl Nic {
    /// The one of this process, if it was opened.
    pub fn opened() -> Option<&'static Nic> {
        NIC.get()?.as_ref().ok()
    }

    /// The one of this process, opened at the first call; the answer is the same ever after.
    pub fn get() -> Result<&'static Nic> {
        NIC.get_or_init(|| Nic::open(&Config::get().verbs)).as_ref().map_err(Error::clone)
    }

    /// One with these settings.
    pub fn open(settings: &Verbs) -> Result<Nic> {
        Nic::on(Device::open(settings)?, settings)
    }

    fn on(device: Device, settings: &Verbs) -> Result<Nic> {
        let interface = settings.interface.clone();
        Ok(Nic { core: Arc::new(Core::new(device)?), listener: Mutex::default(), interface })
    }

    /// The name of device and port.
    pub fn name(&self) -> String {
        self.core.device.name()
    }

    /// Whether the device's atomics are atomic with those of the CPU.
    pub fn is_coherent(&self) -> bool {
        self.core.device.coherent
    }

    /// Whether its link is Ethernet (RoCE), else InfiniBand.
    pub fn is_ethernet(&self) -> bool {
        self.core.device.ethernet
    }

    /// What others need to contact this process. From the first call on they can.
    pub fn contact(&self) -> Result<Contact> {
        let mut listener = self.listener.lock();
        if let Some(listener) = &*listener {
            return Ok(*listener.contact());
        }
        let opened = Listener::start(&self.core, self.interface.as_deref())?;
        Ok(*listener.insert(opened).contact())
    }

    /// The secret of the job of this process; one of its own, if it has not been told one.
    pub fn secret(&self) -> Result<Secret> {
        let mut secrets = self.core.secrets.lock();
        if secrets.is_empty() {
            secrets.push(Secret::fresh()?);
        }
        Ok(secrets[0])
    }

    /// A process that knows this secret may contact this process from here on.
    pub fn admit(&self, secret: Secret) {
        let mut secrets = self.core.secrets.lock();
        if !secrets.contains(&secret) {
            secrets.push(secret);
        }
    }

    /// Lets others write, read and change memory of this process, until what is returned is
    /// dropped. No bytes need no registration, and nobody can reach them.
    pub fn expose(&self, base: *mut u8, bytes: u64) -> Result<Exposed> {
        let region = match bytes {
            0 => None,
            bytes => Some(self.core.registrations.expose(base as u64, bytes)?),
        };
        Ok(Exposed { core: self.core.clone(), base: base as u64, region })
    }

    /// Says who knows memory that stays until [`Nic::forget`] is called for it: once used, it stays
    /// registered.
    pub fn set_allocations(&self, allocations: Allocations) {
        self.core.registrations.set_allocations(allocations);
    }

    /// The allocation that begins there ends.
    pub fn forget(&self, base: *const u8) {
        self.core.registrations.forget(base as u64);
    }

    /// The process of a contact, which knows this secret; the same one for the same process.
    pub fn peer(&self, contact: &Contact, secret: Secret) -> Arc<Peer> {
        let known = |peers: &[Arc<Peer>]| {
            peers.binary_search_by_key(&contact.uid(), |peer| peer.contact().uid())
        };
        let peers = self.core.peers.read_recursive();
        if let Ok(index) = known(&peers) {
            return peers[index].clone();
        }
        drop(peers);
        let mut peers = self.core.peers.write();
        // Those that nobody needs any more stay as long as they answer: there may be a next time.
        peers.retain(|peer| Arc::strong_count(peer) > 1 || peer.is_worth_keeping());
        let index = known(&peers).unwrap_or_else(|index| {
            peers.insert(index, Arc::new(Peer::new(self.core.clone(), *contact, secret)));
            index
        });
        peers[index].clone()
    }

    /// Takes the completions of all peers, without waiting. How many peers were lost, ever: who
    /// waits looks at its own when there are more.
    pub fn progress(&self) -> u64 {
        self.core.poll_all();
        // Acquire: pairs with the Release in `count_loss`.
        self.core.losses.load(Ordering::Acquire)
    }

    /// Asks the process of a contact what it has to say of what `about` stands for, and whether it is
    /// still there; there need be no connection to it.
    pub fn probe(&self, contact: &Contact, secret: Secret, about: u64) -> Probe {
        Probe::new(contact, secret, self.core.uid, about)
    }

    /// Says who knows the answers to probes.
    pub fn set_notices(&self, notices: Notices) {
        let _ = self.core.notices.set(notices);
    }

    /// What this process has and did.
    pub fn counts(&self) -> Counts {
        let (regions, registered_bytes, registrations) = self.core.registrations.counts();
        let accepted = self.core.accepted.count();
        let mut counts =
            Counts { accepted, regions, registered_bytes, registrations, ..Counts::default() };
        for peer in self.core.peers.read_recursive().iter() {
            let (up, kinds) = peer.kinds();
            counts.contacted += u64::from(up);
            counts.kinds.add(&kinds);
        }
        counts
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        // The thread and the peers hold the core.
        *self.listener.lock() = None;
        self.core.peers.write().clear();
    }
}

/// Memory of this process that others may use, until this is dropped.
pub struct Exposed {
    core: Arc<Core>,
    base: u64,
    /// with its number
    region: Option<(u64, Arc<Region>)>,
}

impl Exposed {
    /// What others need to know of it.
    pub fn remote(&self) -> Remote {
        let key = self.region.as_ref().map_or(0, |(_, region)| region.remote_key().into());
        Remote { at: self.base, key }
    }
}

impl Drop for Exposed {
    fn drop(&mut self) {
        if let Some((number, _)) = &self.region {
            self.core.registrations.conceal(self.base, *number);
        }
    }
}
