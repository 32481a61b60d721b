//! Interface between the transport and its device: the operations that the transport needs, for
//! each kind of device. Requests and causes of failures are plain data
//! ([`request`](crate::request)); a new kind of device is a new variant here, in a module
//! of its own that does not name this one. Invariant: all objects of a process are of one device.

use std::os::fd::OwnedFd;
use std::time::Instant;

use super::device_link::{Link, VERBS_PLACES};
use crate::config::NetSettings;
use crate::error::{Error, Result};
use crate::number::Number;
use crate::request::{END_BYTES, MemoryOf};
pub use crate::tcp::Serving;
pub use crate::verbs::LastingMemory;
use crate::{tcp, verbs};

/// Kind of a device, which decides how it is opened and connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// a port of an RDMA device
    Verbs,
    /// TCP
    Tcp,
}

impl DeviceKind {
    /// Number of kinds, by the last one.
    pub const COUNT: usize = DeviceKind::Tcp as usize + 1;
}

/// Kind of the network of a device. Two processes connect only if they are on one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NetworkKind {
    /// InfiniBand
    InfiniBand = 1,
    /// RDMA over Ethernet
    Roce = 2,
    /// TCP, on any network
    Tcp = 3,
}

impl NetworkKind {
    /// Returns the name of the transport over it, for a report.
    pub fn transport(self) -> &'static str {
        match self {
            NetworkKind::InfiniBand | NetworkKind::Roce => "verbs between nodes",
            NetworkKind::Tcp => "TCP between nodes",
        }
    }
}

/// The device of this process.
pub enum Device {
    /// InfiniBand or RoCE
    Verbs(Box<verbs::VerbsDevice>),
    /// TCP
    Tcp(tcp::TcpDevice),
}

impl Device {
    /// Opens the device of a kind, with these settings.
    pub fn open(kind: DeviceKind, settings: &NetSettings) -> Result<Device> {
        match kind {
            DeviceKind::Verbs if !settings.tries_verbs() => {
                Err(Error::NoVerbs("switched off by FOMPI_VERBS or FOMPI_NET"))
            }
            DeviceKind::Verbs => verbs::VerbsDevice::open(&settings.verbs)
                .map(|device| Device::Verbs(Box::new(device))),
            DeviceKind::Tcp => Ok(Device::Tcp(tcp::TcpDevice::open())),
        }
    }

    /// Kind of its network.
    pub fn kind(&self) -> NetworkKind {
        match self {
            Device::Verbs(device) if device.port.ethernet => NetworkKind::Roce,
            Device::Verbs(_) => NetworkKind::InfiniBand,
            Device::Tcp(_) => NetworkKind::Tcp,
        }
    }

    /// Name of an RDMA device, and its port.
    pub fn name(&self) -> Option<String> {
        match self {
            Device::Verbs(device) => Some(device.port.name()),
            Device::Tcp(_) => None,
        }
    }

    /// Whether its atomics are atomic with respect to those of the CPU.
    pub fn is_coherent(&self) -> bool {
        match self {
            Device::Verbs(device) => device.port.coherent,
            // The processor of the target carries them out.
            Device::Tcp(_) => true,
        }
    }

    /// The device if a thread of each process serves the others: then the processor of a target
    /// carries requests out, also accumulates of any predefined operation and type; additions ring
    /// doorbells; threads that wait sleep instead of polling; the stream of a first contact is the
    /// connection from there on; and no memory has to be registered.
    #[inline]
    pub fn service(&self) -> Option<&tcp::TcpDevice> {
        match self {
            Device::Verbs(_) => None,
            Device::Tcp(device) => Some(device),
        }
    }

    /// The memory that is registered with the device, if it needs that.
    pub fn registrations(&self) -> Option<&verbs::Registrations> {
        match self {
            Device::Verbs(device) => Some(&device.registrations),
            Device::Tcp(_) => None,
        }
    }

    /// Bytes of the longest message.
    pub fn message_bytes_max(&self) -> u64 {
        match self {
            Device::Verbs(device) => device.port.message_bytes_max.into(),
            Device::Tcp(_) => tcp::MESSAGE_BYTES_MAX.into(),
        }
    }

    /// Registers memory of the transport itself, which the device may read and write.
    pub fn register(&self, at: u64, bytes: u64) -> Result<Region> {
        match self {
            Device::Verbs(device) => device.register(at, bytes).map(Region::Verbs),
            Device::Tcp(_) => Ok(Region::OF_USER),
        }
    }

    /// Registers memory for other processes. Returns the number of the registration and the region.
    pub fn expose(&self, at: u64, bytes: u64, owner: MemoryOf) -> Result<(u64, Region)> {
        match self {
            Device::Verbs(device) => device
                .registrations
                .expose(at, bytes)
                .map(|(number, region)| (number, Region::Verbs(region))),
            Device::Tcp(device) => {
                device.expose(at, bytes, owner).map(|key| (key.into(), Region::Tcp { key }))
            }
        }
    }

    /// Ends registration `number` of the memory at `at`. Requests that use its region keep it until
    /// they are done.
    pub fn conceal(&self, at: u64, number: u64) {
        match self {
            Device::Verbs(device) => device.registrations.conceal(at, number),
            Device::Tcp(device) => device.conceal(number.low_u32()),
        }
    }

    /// Returns a region that contains a buffer of the user. `arriving` says whether the device
    /// writes there or only reads.
    pub fn buffer(&self, at: u64, bytes: u64, arriving: bool) -> Result<Region> {
        match self {
            Device::Verbs(device) => {
                device.registrations.buffer(at, bytes, arriving).map(Region::Verbs)
            }
            Device::Tcp(device) => device.buffer(at, bytes).map(|()| Region::OF_USER),
        }
    }

    /// Returns a region that contains a buffer of the user and stays registered longer than an
    /// operation; `None` also where nothing is registered.
    pub fn lasting(&self, at: u64, bytes: u64) -> Option<Region> {
        self.registrations()?.lasting(at, bytes).map(Region::Verbs)
    }

    /// Ends the registrations of buffers that no request uses, before the user learns that
    /// operations are done.
    #[inline]
    pub fn sweep(&self) {
        if let Some(registrations) = self.registrations() {
            registrations.sweep();
        }
    }

    /// Number and bytes of the current registrations, and how often memory of an origin was
    /// registered.
    pub fn registered(&self) -> (u64, u64, u64) {
        match self {
            Device::Verbs(device) => device.registrations.counts(),
            Device::Tcp(device) => {
                let (count, bytes) = device.exposed();
                (count, bytes, 0)
            }
        }
    }

    /// Makes the origin's end of a connection, with room for `places` requests, or for fewer if the
    /// device does not allow as many.
    pub fn begin(&self) -> Result<Opening<'_>> {
        match self {
            Device::Verbs(device) => device.begin(VERBS_PLACES).map(Opening::Verbs),
            Device::Tcp(device) => device.begin().map(Opening::Tcp),
        }
    }

    /// Makes the target's end of a connection for the end of an origin, and returns it. It stays as
    /// long as the origin answers.
    pub fn accept(&self, origin: &[u8; END_BYTES]) -> Result<[u8; END_BYTES]> {
        match self {
            Device::Verbs(device) => device.accept(origin),
            Device::Tcp(device) => device.accept().map(|()| [0; END_BYTES]),
        }
    }

    /// Checks from time to time whether the origins of accepted connections still answer, without
    /// waiting. Returns the time of the next call.
    pub fn poll_accepted(&self, now: Instant) -> Option<Instant> {
        match self {
            Device::Verbs(device) => device.poll_accepted(now),
            Device::Tcp(_) => None,
        }
    }

    /// Number of accepted connections.
    pub fn accepted(&self) -> u64 {
        match self {
            Device::Verbs(device) => device.accepted(),
            Device::Tcp(device) => device.accepted(),
        }
    }
}

/// Registered memory. It stays registered as long as a value for it lives.
#[derive(Clone)]
pub enum Region {
    /// of InfiniBand or RoCE
    Verbs(verbs::VerbsRegion),
    /// of TCP, where nothing is registered with a device
    Tcp {
        /// its key for other processes, or 0
        key: u32,
    },
}

impl Region {
    /// That of any memory of the user where nothing has to be registered.
    pub const OF_USER: Region = Region::Tcp { key: 0 };

    /// Key of the memory for requests of this process.
    pub fn local_key(&self) -> u32 {
        match self {
            Region::Verbs(region) => region.local_key(),
            Region::Tcp { .. } => 0,
        }
    }

    /// Key of the memory for requests of other processes.
    pub fn remote_key(&self) -> u32 {
        match self {
            Region::Verbs(region) => region.remote_key(),
            Region::Tcp { key } => *key,
        }
    }
}

/// The origin's end of a connection whose other end is not known yet.
pub enum Opening<'a> {
    /// of InfiniBand or RoCE
    Verbs(verbs::VerbsOpening<'a>),
    /// of TCP
    Tcp(tcp::TcpOpening),
}

impl Opening<'_> {
    /// The end as the target needs to know it.
    pub fn end(&self) -> [u8; END_BYTES] {
        match self {
            Opening::Verbs(opening) => opening.end(),
            Opening::Tcp(_) => [0; END_BYTES],
        }
    }

    /// Connects to the target's end. The stream is that of the first contact; a process has none to
    /// itself unless the device keeps streams.
    pub fn connect(self, target: &[u8; END_BYTES], stream: Option<OwnedFd>) -> Result<Link> {
        match self {
            Opening::Verbs(opening) => opening.connect(target).map(Link::Verbs),
            Opening::Tcp(opening) => {
                let stream = stream.expect("the device keeps it");
                opening.connect(stream).map(|link| Link::Tcp(Box::new(link)))
            }
        }
    }
}
