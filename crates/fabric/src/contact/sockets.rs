//! The listening sockets of the connection thread: at all addresses of the node, or only at those
//! of the interface that FOMPI_NET_INTERFACE names; at a port of the system's choice, or at one of
//! FOMPI_NET_PORTS. Invariant: all of them have the same port, and the system keeps back a
//! connection on which no data has arrived, for a few seconds.

use crate::config::{NetSettings, Ports};
use crate::error::{Error, Result, kept};
use crate::number::Number;
use crate::sys::own_sockets;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

/// Length of the backlog: all ranks of a job may connect to one rank at the same time.
const BACKLOG: i32 = 4096;
/// Time after which the system hands over a connection on which no data has arrived, in seconds.
const SILENCE: libc::c_int = 3;
/// Ports of the system's choice that are tried until one is free at all addresses.
const TRIES: u32 = 16;

/// Where the connection thread listens.
#[derive(Clone, Debug, Default)]
pub struct ListenPlaces {
    interface: Option<String>,
    ports: Option<Ports>,
}

impl ListenPlaces {
    /// Returns the places that the settings name.
    pub fn of(settings: &NetSettings) -> ListenPlaces {
        ListenPlaces { interface: settings.interface.clone(), ports: settings.ports }
    }

    /// The interface at whose addresses alone it listens, if one is named.
    pub fn interface(&self) -> Option<&str> {
        self.interface.as_deref()
    }

    /// Listens; `addresses` are those of the interface, if one is named.
    pub fn listen(&self, addresses: &[Ipv6Addr]) -> Result<Vec<TcpListener>> {
        let at = |port| match self.interface {
            Some(_) => at(addresses, port),
            None => anywhere(port),
        };
        let is_used = |made: &io::Result<Vec<TcpListener>>| {
            made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
        };
        let made = match self.ports {
            None => (0..TRIES).map(|_| at(0)).find(|made| !is_used(made)),
            Some(ports) => in_turns(ports).map(at).find(|made| !is_used(made)),
        };
        match (made, self.ports) {
            (Some(made), _) => made.map_err(|error| Error::System {
                call: "bind",
                errno: error.raw_os_error().unwrap_or(0),
            }),
            (None, Some(Ports { low, high })) => Err(Error::NoListener(kept(format!(
                "all ports of FOMPI_NET_PORTS={low}-{high} are in use"
            )))),
            (None, None) => Err(Error::NoListener("no port is free at all addresses")),
        }
    }
}

/// All ports of a range. Processes begin with different ones, because those that start at one time
/// would find the same ones in use.
fn in_turns(ports: Ports) -> impl Iterator<Item = u16> {
    let all = ports.low..=ports.high;
    let count = all.len();
    all.cycle().skip(std::process::id().to_usize() % count).take(count)
}

/// Listens on IPv6 and IPv4, whatever the value of `net.ipv6.bindv6only`; on IPv4 alone where there
/// is no IPv6. Port 0 is one of the system's choice.
fn anywhere(port: u16) -> io::Result<Vec<TcpListener>> {
    let both = listen_at(Ipv6Addr::UNSPECIFIED.into(), port, false);
    Ok(vec![match both {
        Err(error) if error.kind() != ErrorKind::AddrInUse => {
            listen_at(Ipv4Addr::UNSPECIFIED.into(), port, true)?
        }
        both => both?,
    }])
}

/// Listens at these addresses, and at no others.
fn at(addresses: &[Ipv6Addr], mut port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    for address in addresses {
        let listener = listen_at(address.to_canonical(), port, true)?;
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}

fn listen_at(address: IpAddr, port: u16, only: bool) -> io::Result<TcpListener> {
    let place = SocketAddr::new(address, port);
    let socket = own_sockets::open(|| Socket::new(Domain::for_address(place), Type::STREAM, None))?;
    if place.is_ipv6() {
        socket.set_only_v6(only)?;
    }
    // Connections of an earlier process that are not quite closed do not keep the port from this
    // one; a socket that listens there does.
    socket.set_reuse_address(port != 0)?;
    let silence = SILENCE;
    let (value, bytes) = ((&raw const silence).cast(), size_of_val(&silence).to_u32());
    let (fd, option) = (socket.as_raw_fd(), libc::TCP_DEFER_ACCEPT);
    // Without this option the thread sees silent connections earlier.
    // SAFETY: the option of a socket that is owned here, whose value is an int.
    unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, option, value, bytes) };
    socket.bind(&place.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_have_one_port_and_no_other_has_it() {
        let [one, other] = [[127, 0, 0, 2], [127, 0, 0, 3]].map(Ipv4Addr::from);
        let listeners = at(&[one.to_ipv6_mapped(), other.to_ipv6_mapped()], 0).unwrap();
        let places: Vec<_> = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
        assert_eq!(places[0].port(), places[1].port());
        assert_eq!(places.iter().map(|place| place.ip()).collect::<Vec<_>>(), [one, other]);
        let elsewhere = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), places[0].port());
        assert!(std::net::TcpStream::connect(elsewhere).is_err());
    }

    #[test]
    fn a_range_of_ports_is_used_up_and_then_refused() {
        // A range of two ports that are free.
        let free = || anywhere(0).unwrap()[0].local_addr().unwrap().port();
        let listen = |places: &ListenPlaces| places.listen(&[]).map(|mut all| all.remove(0));
        let (places, low) = (0..100)
            .find_map(|_| {
                let low = free();
                let ports = Some(Ports { low, high: low.checked_add(1)? });
                let places = ListenPlaces { interface: None, ports };
                let both = [listen(&places), listen(&places)];
                both.iter().all(Result::is_ok).then_some((places, low))
            })
            .unwrap();
        let two = [listen(&places).unwrap(), listen(&places).unwrap()];
        let mut ports = two.each_ref().map(|listener| listener.local_addr().unwrap().port());
        ports.sort_unstable();
        assert_eq!(ports, [low, low + 1]);
        let error = listen(&places).unwrap_err();
        let range = format!("all ports of FOMPI_NET_PORTS={low}-{} are in use", low + 1);
        assert!(error.to_string().contains(&range), "{error}");
        drop(two);
        assert!(listen(&places).is_ok(), "they are free again");
    }
}
