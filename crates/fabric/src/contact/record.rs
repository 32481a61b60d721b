//! Contact of a process: the data with which other processes connect to it, which the ranks
//! exchange when they make a window. It holds the identity of the process and the addresses of its
//! connection thread. Nothing in it is secret.
//!
//! | words  | contents                                                          |
//! |--------|-------------------------------------------------------------------|
//! | 0      | number of the process, different from those of all others         |
//! | 1      | process id (low half), TCP port of the thread (high half)         |
//! | 2      | 1 if the thread listens at these addresses only, else 0           |
//! | 3..11  | up to four addresses in the form of IPv6, zero for none           |
//! | 11..15 | name of the node, 31 bytes at most, zero at the end               |
//! | 15     | 0                                                                 |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::error::{Error, Result, kept};
use crate::number::Number;

/// Number of addresses that a contact has room for.
pub const ADDRESSES_MAX: usize = 4;
const NODE_BYTES_MAX: usize = 31;

/// The address record of a process, with which other processes connect to it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contact(pub [u64; 16]);

impl Contact {
    /// Makes the contact of this process, whose connection thread listens at `port` of these
    /// addresses; at no others if `only` is set.
    pub fn new(uid: u64, port: u16, addresses: &[Ipv6Addr], only: bool) -> Contact {
        let mut words = [0; 16];
        words[0] = uid;
        words[1] = u64::from(port) << 32 | u64::from(std::process::id());
        words[2] = only.into();
        for (index, address) in addresses.iter().take(ADDRESSES_MAX).enumerate() {
            let bytes = address.octets();
            let half = |from: usize| u64::from_ne_bytes(bytes[from..from + 8].try_into().unwrap());
            words[3 + 2 * index] = half(0);
            words[4 + 2 * index] = half(8);
        }
        let mut node = [0; NODE_BYTES_MAX + 1];
        let name = node_name();
        let length = name.len().min(NODE_BYTES_MAX);
        node[..length].copy_from_slice(&name[..length]);
        for (word, bytes) in words[11..15].iter_mut().zip(node.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().unwrap());
        }
        Contact(words)
    }

    /// Number of the process.
    pub fn uid(&self) -> u64 {
        self.0[0]
    }

    /// Process id on its node.
    pub fn pid(&self) -> i32 {
        self.0[1].low_u32().cast_signed()
    }

    /// Name of the node of the process.
    pub fn node(&self) -> String {
        let bytes: Vec<u8> = self.0[11..15].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// Addresses to try in this order. If the process is on a node with the name of this node, the
    /// first one is the loopback address, unless the thread listens at certain addresses only. The
    /// handshake shows whether the right process answers.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let port = (self.0[1] >> 32).low_u16();
        let mut addresses = Vec::new();
        let name = node_name();
        if self.0[2] == 0 && self.node().as_bytes() == &name[..name.len().min(NODE_BYTES_MAX)] {
            addresses.push(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        }
        for pair in self.0[3..11].chunks_exact(2).filter(|pair| **pair != [0, 0]) {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&pair[0].to_ne_bytes());
            bytes[8..].copy_from_slice(&pair[1].to_ne_bytes());
            addresses.push(SocketAddr::new(Ipv6Addr::from(bytes).to_canonical(), port));
        }
        addresses
    }

    /// The error that this process cannot be reached, with the cause.
    pub fn lost(&self, cause: impl Into<String>) -> Error {
        Error::Lost { rank: None, node: kept(self.node()), pid: self.pid(), cause: kept(cause) }
    }
}

/// Name of this node.
fn node_name() -> Vec<u8> {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is a local variable; its last byte stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    name.iter().copied().take_while(|byte| *byte != 0).collect()
}

/// Returns the addresses of this node, or of one interface of it: IPv4 first, loopback addresses
/// last, and no link-local addresses.
pub fn node_addresses(interface: Option<&str>) -> Result<Vec<Ipv6Addr>> {
    let all = interfaces()?.into_iter();
    let mut found: Vec<Ipv6Addr> = all
        .filter(|(name, _)| interface.is_none_or(|wanted| wanted == name))
        .map(|(_, address)| address)
        .collect();
    if let (true, Some(name)) = (found.is_empty(), interface) {
        let what = format!("interface {name} (FOMPI_NET_INTERFACE) has no address");
        return Err(Error::NoListener(kept(what)));
    }
    let rank = |address: &Ipv6Addr| {
        let address = address.to_canonical();
        (address.is_loopback(), address.is_ipv6())
    };
    found.sort_by_key(rank);
    Ok(found)
}

/// Returns the name of the interface of this node that has an address.
pub fn interface_of(address: IpAddr) -> Option<String> {
    let has = |(_, found): &(String, Ipv6Addr)| found.to_canonical() == address.to_canonical();
    interfaces().ok()?.into_iter().find(has).map(|(name, _)| name)
}

/// Returns all addresses of this node that other nodes can use, each with the name of its
/// interface.
pub fn interfaces() -> Result<Vec<(String, Ipv6Addr)>> {
    let mut first = core::ptr::null_mut();
    // SAFETY: `first` is a local variable.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(crate::sys::last_error("getifaddrs"));
    }
    let mut found = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: an element of the list, which lives until it is freed below.
        let element = unsafe { &*next };
        next = element.ifa_next;
        // SAFETY: the name of an interface is a C string.
        let name = unsafe { core::ffi::CStr::from_ptr(element.ifa_name) };
        let name = name.to_string_lossy();
        // SAFETY: an address of the list, or null.
        let address = unsafe { usable_address(element.ifa_addr) };
        found.extend(address.map(|address| (name.clone().into_owned(), address)));
    }
    // SAFETY: the list is freed once.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// Returns an address of an interface in the form of IPv6, if other nodes can use it.
///
/// # Safety
/// `address` is null, or points to a socket address that is valid for its family.
unsafe fn usable_address(address: *const libc::sockaddr) -> Option<Ipv6Addr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees that it is valid; each cast is to the type of its family.
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let bits = (*address.cast::<libc::sockaddr_in>()).sin_addr.s_addr;
                Some(Ipv4Addr::from(u32::from_be(bits)).to_ipv6_mapped())
            }
            libc::AF_INET6 => {
                let bytes = (*address.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr;
                Some(Ipv6Addr::from(bytes)).filter(|found| !found.is_unicast_link_local())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(interface: Option<&str>) -> Result<Contact> {
        Ok(Contact::new(7, 65535, &node_addresses(interface)?, interface.is_some()))
    }

    #[test]
    fn a_contact_holds_what_was_stored_in_it() {
        let contact = contact(None).unwrap();
        assert_eq!((contact.uid(), contact.pid() as u32), (7, std::process::id()));
        assert!(!contact.node().is_empty());
        let addresses = contact.addresses();
        assert_eq!(addresses[0], "127.0.0.1:65535".parse().unwrap());
        assert!(addresses.iter().all(|address| address.port() == 65535));
    }

    #[test]
    fn an_interface_may_be_chosen() {
        let there = contact(Some("lo")).unwrap().addresses();
        let ours = node_addresses(Some("lo")).unwrap();
        assert!(
            there.iter().map(|address| address.ip()).eq(ours.iter().map(|ip| ip.to_canonical()))
        );
        assert!(there.iter().all(|address| address.ip().is_loopback()));
        let error = contact(Some("none0")).unwrap_err();
        assert!(error.to_string().contains("interface none0"));
    }

    #[test]
    fn an_address_belongs_to_an_interface() {
        assert_eq!(interface_of(Ipv4Addr::LOCALHOST.into()).as_deref(), Some("lo"));
        assert_eq!(interface_of(Ipv4Addr::new(192, 0, 2, 1).into()), None);
    }

    #[test]
    fn a_node_of_another_name_is_not_searched_for_here() {
        let mut contact = contact(None).unwrap();
        contact.0[11] = u64::from_ne_bytes(*b"far away");
        contact.0[3..11].fill(0);
        assert!(contact.addresses().is_empty());
    }
}
