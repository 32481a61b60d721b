//! State of this process in the transport between nodes: the device that it has opened, its
//! listener, its peers, and the memory that it exposes. Invariant: a process has one for each kind
//! of device that it uses; in tests, each stands for a process.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::counts::Counts;
use super::device::{Device, DeviceKind, LastingMemory, NetworkKind, Region, Serving};
use super::greeting;
use super::peer::{Core, Peer};
use crate::config::{Config, NetSettings};
use crate::contact::{
    BYTES, Contact, Identity, ListenPlaces, Listener, Notices, Probe, Reply, Secret, Service,
    interface_of, reach,
};
use crate::error::{Error, Result};
use crate::remote::{Addressed, Remote, Transport};
use crate::request::MemoryOf;
use crate::sync::{AtomicU32, Ordering};
use crate::sys::processors::Processors;
use crate::tcp::TcpDevice;

impl Service for Core {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn answer(&self, question: &[u8; BYTES]) -> Option<Reply> {
        greeting::answer(&self.device, &self.identity, question)
    }

    fn adopt(&self, stream: OwnedFd) {
        if let Some(service) = self.device.service() {
            service.adopt(stream);
        }
    }

    fn poll(&self, now: Instant) -> Option<Instant> {
        self.device.poll_accepted(now)
    }
}

/// The transport of this process: its device, and everything that is used with it.
pub struct Wire {
    pub(super) core: Arc<Core>,
    listener: Mutex<Option<Listener>>,
    places: ListenPlaces,
    /// calls of `serve_at_times`
    calls: AtomicU32,
}

/// A polling rank serves other processes in one of this number of calls, because a system call
/// costs as much as some ten of them.
pub(super) const CALLS_PER_SERVICE: u32 = 32;

/// The `Wire` of each kind of device.
static WIRES: [OnceLock<Result<Wire>>; DeviceKind::COUNT] =
    [const { OnceLock::new() }; DeviceKind::COUNT];

impl Wire {
    /// Returns each `Wire` of this process that has been opened.
    pub fn opened() -> impl Iterator<Item = &'static Wire> {
        WIRES.iter().filter_map(|wire| wire.get()?.as_ref().ok())
    }

    /// Returns the `Wire` of this process on a kind of device. The first call opens it; later calls
    /// return the same result.
    pub fn get(kind: DeviceKind) -> Result<&'static Wire> {
        let open = || Wire::open(kind, &Config::get().net);
        WIRES[kind as usize].get_or_init(open).as_ref().map_err(Error::clone)
    }

    /// Opens a `Wire` on a kind of device, with these settings.
    pub fn open(kind: DeviceKind, settings: &NetSettings) -> Result<Wire> {
        Wire::on(Device::open(kind, settings)?, settings)
    }

    pub(super) fn on(device: Device, settings: &NetSettings) -> Result<Wire> {
        let places = ListenPlaces::of(settings);
        Ok(Wire {
            core: Arc::new(Core::new(device)?),
            listener: Mutex::default(),
            places,
            calls: AtomicU32::new(0),
        })
    }

    /// Whether the device's atomics are atomic with respect to those of the CPU.
    pub fn is_coherent(&self) -> bool {
        self.core.device.is_coherent()
    }

    /// Whether a thread of each process serves the others: a post to a control word wakes the
    /// threads that sleep on the doorbell of its rank, and targets carry out accumulates of any
    /// predefined operation and type.
    pub fn is_served(&self) -> bool {
        self.core.device.service().is_some()
    }

    /// Sets the time for which a thread spins before it sleeps, where threads sleep, and whether
    /// several threads may communicate at once.
    pub fn wait_so(&self, spin: Duration, threads: bool) {
        self.core.wait_policy.set_spin(spin);
        if threads {
            self.several_threads();
        }
    }

    /// Prepares for calls of several threads, from now on.
    pub fn several_threads(&self) {
        self.core.wait_policy.several_threads();
    }

    /// Lets the calling thread, which waits for its own words, serve other processes until the
    /// returned value is dropped: a request that changes a word then wakes one thread, not two.
    /// `None` if other threads of this process may communicate, or if a device serves them.
    pub fn serving(&self) -> Option<Serving> {
        self.core.device.service().filter(|_| self.core.wait_policy.is_alone())?.serving()
    }

    /// Carries out the requests that have arrived, in one of [`CALLS_PER_SERVICE`] calls. A rank
    /// that polls its memory calls this because, on a node without a free processor, the system
    /// lets the service thread run only when that rank has used up its time slice, which takes
    /// milliseconds.
    pub fn serve_at_times(&self) {
        // Relaxed: it decides nothing else.
        if self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(CALLS_PER_SERVICE)
            && let Some(mut serving) = self.core.device.service().and_then(TcpDevice::serving)
        {
            serving.step(0);
            serving.keep_if_busy();
        }
    }

    /// Records that this process waits for another one, or polls: the notifications that it sends
    /// from now on belong to no earlier burst.
    pub fn note_wait(&self) {
        // Relaxed: a count.
        self.core.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets the thread that serves other processes, if the device has one, run on the processors of
    /// a process of this node, too.
    pub fn serve_on_those_of(&self, pid: i32) {
        // A process that is gone has none.
        if let (Some(service), Ok(processors)) =
            (self.core.device.service(), Processors::of_process(pid))
        {
            service.serve_on(&processors);
        }
    }

    /// Whether the device keeps exposed memory in place, so that all of its pages are allocated.
    pub fn keeps_in_place(&self) -> bool {
        !self.is_served()
    }

    /// Kind of the network.
    pub fn kind(&self) -> NetworkKind {
        self.core.device.kind()
    }

    /// Returns the path to other processes, for a report: its RDMA device and port, or the
    /// interface and the address of its first connection; empty before there is one.
    pub fn way(&self) -> String {
        let address = self.core.own_address.get();
        self.core.device.name().unwrap_or_else(|| address.map(in_words).unwrap_or_default())
    }

    /// Returns the contact of this process for others. The first call starts the listener.
    pub fn contact(&self) -> Result<Contact> {
        let mut listener = self.listener.lock();
        if let Some(listener) = &*listener {
            return Ok(*listener.contact());
        }
        let opened = Listener::start(&self.core, &self.places)?;
        Ok(*listener.insert(opened).contact())
    }

    /// Returns the secret of the job of this process; a new one, if the process has not been given
    /// one.
    pub fn secret(&self) -> Result<Secret> {
        self.core.identity.secret()
    }

    /// Accepts connections from processes that know this secret, from here on.
    pub fn admit(&self, secret: Secret) {
        self.core.identity.admit(secret);
    }

    /// Exposes memory of the program, which may unmap or protect it meanwhile: an access to such a
    /// page is an error of the origin.
    pub fn expose_of_program(&self, base: *mut u8, bytes: u64) -> Result<Exposed> {
        self.expose_of(MemoryOf::Program, base, bytes)
    }

    /// Exposes memory of the program under a memory handle. Where the target serves requests, one
    /// with the key of an exposure that has ended is an error of its origin, too; an RDMA device
    /// ends the connection.
    pub fn expose_by_handle(&self, base: *mut u8, bytes: u64) -> Result<Exposed> {
        self.expose_of(MemoryOf::Handle, base, bytes)
    }

    fn expose_of(&self, owner: MemoryOf, base: *mut u8, bytes: u64) -> Result<Exposed> {
        let region = match bytes {
            0 => None,
            bytes => Some(self.core.device.expose(base as u64, bytes, owner)?),
        };
        Ok(Exposed { core: self.core.clone(), base: base as u64, region })
    }

    /// Sets the function that finds memory of the library. It stays registered after its first use,
    /// until [`Wire::deregister`] is called for it.
    pub fn set_lasting_memory(&self, find: LastingMemory) {
        if let Some(registrations) = self.core.device.registrations() {
            registrations.set_lasting_memory(find);
        }
    }

    /// Ends the registrations of memory of the library, before it is given back.
    pub fn deregister(&self, base: u64, bytes: u64) {
        if let Some(registrations) = self.core.device.registrations() {
            registrations.deregister(base, bytes);
        }
    }

    /// Whether a peer has refused a request, and the user does not know it yet.
    pub fn has_refusals(&self) -> bool {
        self.core.has_refusals()
    }

    /// Begins a liveness probe of the process of a contact, which also asks for the failure notice
    /// about `about`. It needs no connection of the device to that process.
    pub fn probe(&self, contact: &Contact, secret: Secret, about: u64) -> Probe {
        Probe::new(&self.core.identity, contact, secret, about)
    }

    /// Asks the process of a contact whether it is there. Returns the address that answers; the
    /// error has the cause for each address. It needs no connection of the device.
    pub fn reach(&self, contact: &Contact, secret: Secret) -> Result<SocketAddr> {
        reach(&self.core.identity, contact, secret)
    }

    /// Sets the function that answers the probes of other processes.
    pub fn set_notices(&self, notices: Notices) {
        self.core.identity.set_notices(notices);
    }

    /// Counts of the resources and operations of this process.
    pub fn counts(&self) -> Counts {
        let (regions, registered_bytes, registrations) = self.core.device.registered();
        let accepted = self.core.device.accepted();
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

impl Transport for Wire {
    type Peer = Peer;
    type Exposed = Exposed;
    type Address = (Contact, Secret);

    /// Zero bytes are not registered, and no process can reach them.
    fn expose(&self, base: *mut u8, bytes: u64) -> Result<Exposed> {
        self.expose_of(MemoryOf::Library, base, bytes)
    }

    fn progress(&self) -> u64 {
        self.core.poll_all();
        self.core.losses()
    }

    /// The same process always gives the same peer.
    fn connect(&self, (contact, secret): &(Contact, Secret)) -> Arc<Peer> {
        self.core.peer(contact, *secret)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // The thread and the peers hold references to the core.
        *self.listener.lock() = None;
        self.core.peers.write().clear();
    }
}

/// An own address, with the name of its interface.
fn in_words(address: &IpAddr) -> String {
    match interface_of(*address) {
        Some(interface) => format!("{interface}, {address}"),
        None => address.to_string(),
    }
}

/// Memory of this process that other processes may access, until this is dropped.
pub struct Exposed {
    core: Arc<Core>,
    base: u64,
    /// the number of the registration, and its region
    region: Option<(u64, Region)>,
}

impl Addressed for Exposed {
    fn remote(&self) -> Remote {
        let key = self.region.as_ref().map_or(0, |(_, region)| region.remote_key().into());
        Remote { at: self.base, key }
    }
}

impl Drop for Exposed {
    fn drop(&mut self) {
        if let Some((number, _)) = &self.region {
            self.core.device.conceal(self.base, *number);
        }
    }
}
