//! Settings of the transport between nodes: its device, the ports and interface at which processes
//! listen, and the use of an RDMA device.

/// FOMPI_NET: the device that carries windows over several nodes. Ranks that differ take the last
/// of their values in this list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Net {
    /// an RDMA device if all ranks have one; otherwise TCP, where the MPI would use it, too
    #[default]
    Auto = 0,
    /// an RDMA device
    Verbs = 1,
    /// TCP
    Tcp = 2,
    /// none
    Off = 3,
}

impl Net {
    /// All values, in their order.
    pub const ALL: [Net; 4] = [Net::Auto, Net::Verbs, Net::Tcp, Net::Off];

    /// Its name in FOMPI_NET.
    pub fn name(self) -> &'static str {
        match self {
            Net::Auto => "auto",
            Net::Verbs => "verbs",
            Net::Tcp => "tcp",
            Net::Off => "off",
        }
    }

    /// Returns the value with a name.
    pub fn parse(value: &str) -> Option<Net> {
        let value = value.to_ascii_lowercase();
        Net::ALL.into_iter().find(|net| net.name() == value)
    }
}

/// FOMPI_NET_PORTS: the ports at which a process may listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// the lowest one, from 1 on
    pub low: u16,
    /// the highest one, not below `low`
    pub high: u16,
}

impl Ports {
    /// Reads `LOW-HIGH`.
    pub fn parse(value: &str) -> Option<Ports> {
        let (low, high) = value.split_once('-')?;
        let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        (0 < low && low <= high).then_some(Ports { low, high })
    }
}

/// The settings of the transport between nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetSettings {
    /// FOMPI_NET
    pub choice: Net,
    /// FOMPI_NET_INTERFACE: the network interface whose addresses other processes use; all
    /// interfaces without one
    pub interface: Option<String>,
    /// FOMPI_NET_PORTS; any port without it
    pub ports: Option<Ports>,
    /// the RDMA device
    pub verbs: Verbs,
}

impl NetSettings {
    /// Whether this process tries to open an RDMA device. FOMPI_NET=verbs wins over
    /// FOMPI_VERBS=off.
    pub fn tries_verbs(&self) -> bool {
        match self.choice {
            Net::Auto => self.verbs.wanted,
            Net::Verbs => true,
            Net::Tcp | Net::Off => false,
        }
    }
}

/// The RDMA device, and how to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verbs {
    /// FOMPI_VERBS: whether to use a device
    pub wanted: bool,
    /// FOMPI_VERBS_LIBRARY: the library of the device
    pub library: String,
    /// FOMPI_VERBS_DEVICE: the name of the device
    pub device: Option<String>,
    /// FOMPI_VERBS_DEVICE, after a colon: its port, counted from 1
    pub port: Option<u8>,
    /// FOMPI_VERBS_GID: index of the port's address
    pub gid: Option<u8>,
    /// FOMPI_VERBS_MTU: the largest packet, in bytes
    pub mtu: Option<u32>,
}

impl Default for Verbs {
    fn default() -> Verbs {
        Verbs {
            wanted: true,
            library: String::from("libibverbs.so.1"),
            device: None,
            port: None,
            gid: None,
            mtu: None,
        }
    }
}
