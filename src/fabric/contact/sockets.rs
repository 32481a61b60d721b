//! The listening sockets of the connection thread: at all addresses of the node, or only at those
//! of the interface that FOMPI_VERBS_INTERFACE names. Invariant: all of them have the same port,
//! and the system keeps back a connection on which no data has arrived, for a few seconds.

use crate::number::Number;
use crate::sys::own_sockets;
use std::io::{ErrorKind, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

/// Length of the backlog: all ranks of a job may connect to one rank at the same time.
const BACKLOG: i32 = 4096;
/// Time after which the system hands over a connection on which no data has arrived, in seconds.
const SILENCE: libc::c_int = 3;
/// Ports that are tried until one is free at all addresses.
const TRIES: u32 = 16;

/// Listens on IPv6 and IPv4, whatever the value of `net.ipv6.bindv6only`; on IPv4 alone where there
/// is no IPv6.
pub fn anywhere() -> Result<Vec<TcpListener>> {
    let both = listen_at(Ipv6Addr::UNSPECIFIED.into(), 0, false);
    Ok(vec![both.or_else(|_| listen_at(Ipv4Addr::UNSPECIFIED.into(), 0, true))?])
}

/// Listens at these addresses, and at no others.
pub fn at(addresses: &[Ipv6Addr]) -> Result<Vec<TcpListener>> {
    for _ in 0..TRIES {
        match at_one_port(addresses) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
    Err(ErrorKind::AddrInUse.into())
}

fn at_one_port(addresses: &[Ipv6Addr]) -> Result<Vec<TcpListener>> {
    let (mut listeners, mut port) = (Vec::new(), 0);
    for address in addresses {
        let listener = listen_at(address.to_canonical(), port, true)?;
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}

fn listen_at(address: IpAddr, port: u16, only: bool) -> Result<TcpListener> {
    let place = SocketAddr::new(address, port);
    let socket = own_sockets::open(|| Socket::new(Domain::for_address(place), Type::STREAM, None))?;
    if place.is_ipv6() {
        socket.set_only_v6(only)?;
    }
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
        let listeners = at(&[one.to_ipv6_mapped(), other.to_ipv6_mapped()]).unwrap();
        let places: Vec<_> = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
        assert_eq!(places[0].port(), places[1].port());
        assert_eq!(places.iter().map(|place| place.ip()).collect::<Vec<_>>(), [one, other]);
        let elsewhere = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), places[0].port());
        assert!(std::net::TcpStream::connect(elsewhere).is_err());
    }
}
