//! Sockets for packets between processes of one network namespace, in the abstract namespace: no
//! file system has their addresses. Not for the meaning of packets. A child of fork(2) has dead
//! sockets in their places ([`own_sockets`]). Invariant: each call returns at the time that its
//! caller names, at the latest.

use crate::kept_file::KeptDescriptor;
use crate::number::Number;
use crate::own_sockets;
use crate::segment_name::Name;
use core::mem::MaybeUninit;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Connections that wait in the backlog of the system.
const BACKLOG: i32 = 128;
/// The time for which a call waits at least, because a time of zero means no limit.
const LEAST: Duration = Duration::from_millis(1);
/// Room for the control message with one descriptor.
const CONTROL_BYTES: usize = 64;

/// Control messages begin with a header of this alignment.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; CONTROL_BYTES]);

/// A socket of packets: listening, or one end of a connection.
pub struct PacketSocket {
    socket: KeptDescriptor<Socket>,
}

fn address(number: u64) -> Result<SockAddr> {
    SockAddr::unix(format!("\0fompi-{number:016x}"))
}

/// Whether a file is the one of the mark, and sealed as all files are that are passed.
pub fn is_file(file: &File, mark: &Name) -> bool {
    let found = |status: std::fs::Metadata| (status.dev(), status.ino(), status.len());
    // SAFETY: a plain question about a descriptor that is ours.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals > 0
        && seals & libc::F_SEAL_SHRINK != 0
        && file.metadata().map(found).ok() == Some((mark.device, mark.inode, mark.bytes))
}

/// Returns a second descriptor of a file of this process, if it is the one of the mark. The program
/// may have closed the first one, and have got its number for another file.
pub fn duplicate(mark: &Name) -> Option<OwnedFd> {
    // SAFETY: any number may be asked for; the result is checked.
    let fd = unsafe { libc::fcntl(mark.fd, libc::F_DUPFD_CLOEXEC, 0) };
    if fd < 0 {
        return None;
    }
    // SAFETY: `fd` was just made and has no other owner.
    let file = unsafe { File::from_raw_fd(fd) };
    is_file(&file, mark).then(|| file.into())
}

impl PacketSocket {
    fn new(socket: Socket) -> Result<PacketSocket> {
        Ok(PacketSocket { socket: KeptDescriptor::new(socket)? })
    }

    fn open() -> Result<Socket> {
        own_sockets::open(|| Socket::new(Domain::UNIX, Type::SEQPACKET, None))
    }

    /// Listens at the address with this number. The socket does not block.
    pub fn listen(number: u64) -> Result<PacketSocket> {
        let socket = PacketSocket::open()?;
        socket.bind(&address(number)?)?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        PacketSocket::new(socket)
    }

    /// Connects to the process that listens at the address with this number.
    pub fn connect(number: u64, until: Instant) -> Result<PacketSocket> {
        let socket = PacketSocket::open()?;
        socket.set_write_timeout(Some(left(until)))?;
        loop {
            match socket.connect(&address(number)?) {
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Ok(()) => return PacketSocket::new(socket),
                Err(error) => return Err(error),
            }
            if Instant::now() >= until {
                return Err(Error::from_raw_os_error(libc::ETIMEDOUT));
            }
        }
    }

    /// Accepts a connection, which does not block.
    pub fn accept(&self) -> Result<PacketSocket> {
        let socket = own_sockets::open(|| self.socket.accept().map(|(socket, _)| socket))?;
        socket.set_nonblocking(true)?;
        PacketSocket::new(socket)
    }

    /// Its descriptor.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Whether its descriptor is still this socket's: programs close descriptors that they do not
    /// know, and get the numbers again.
    pub fn is_open(&self) -> bool {
        self.socket.is_open()
    }

    /// Sends a packet. It fits into the buffer of the socket if the other process reads.
    pub fn send(&self, packet: &[u8]) -> Result<()> {
        self.socket.send_with_flags(packet, libc::MSG_NOSIGNAL).map(drop)
    }

    /// Sends a packet with a descriptor.
    pub fn send_with(&self, packet: &[u8], fd: &OwnedFd) -> Result<()> {
        let mut control = Control([MaybeUninit::zeroed(); CONTROL_BYTES]);
        let mut part =
            libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() };
        let number = size_of::<RawFd>().to_u32();
        // SAFETY: plain data, for which zero is a value.
        let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: a computation.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(number) }.to_usize();
        // SAFETY: the control buffer has room for a header and one descriptor.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(number).to_usize();
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd.as_raw_fd());
        }
        // SAFETY: all that the message names lives until the call returns.
        match unsafe { libc::sendmsg(self.fd(), &message, libc::MSG_NOSIGNAL) } {
            sent if sent == packet.len().cast_signed() => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Receives a packet without waiting. Descriptors that come with it are dropped by the system.
    pub fn receive_now(&self, to: &mut [u8]) -> Result<usize> {
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: `to` may be written.
        let count = unsafe { libc::recv(self.fd(), to.as_mut_ptr().cast(), to.len(), flags) };
        end_is_an_error(count)
    }

    /// Waits for a packet, and receives it. Descriptors that come with it are dropped.
    pub fn receive(&self, to: &mut [u8], until: Instant) -> Result<usize> {
        self.wait(until)?;
        self.receive_now(to)
    }

    /// Waits for a packet, and receives it. `passed`: a place for a descriptor that comes with it.
    pub fn receive_with(
        &self,
        to: &mut [u8],
        passed: &mut Option<OwnedFd>,
        until: Instant,
    ) -> Result<usize> {
        self.wait(until)?;
        let mut control = Control([MaybeUninit::zeroed(); CONTROL_BYTES]);
        let mut part = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
        // SAFETY: plain data, for which zero is a value.
        let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES;
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: all that the message names lives until the call returns.
        let count = unsafe { libc::recvmsg(self.fd(), &mut message, flags) };
        let count = end_is_an_error(count)?;
        // SAFETY: the system has filled the message in.
        for fd in unsafe { descriptors(&message) } {
            *passed = Some(fd); // one that was there is closed
        }
        Ok(count)
    }

    /// Waits until there is something to receive.
    fn wait(&self, until: Instant) -> Result<()> {
        loop {
            let now = Instant::now();
            if now >= until {
                return Err(Error::from_raw_os_error(libc::ETIMEDOUT));
            }
            let mut ready = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
            let ms = i32::try_from((until - now).as_millis()).unwrap_or(i32::MAX - 1) + 1;
            // SAFETY: one pollfd that is ours.
            match unsafe { libc::poll(&mut ready, 1, ms) } {
                0 => {}
                count if count > 0 => return Ok(()),
                _ if Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
                _ => return Err(Error::last_os_error()),
            }
        }
    }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(LEAST)
}

/// The result of a receiving call, in which the end of the connection is an error.
fn end_is_an_error(count: isize) -> Result<usize> {
    match usize::try_from(count) {
        Ok(0) => Err(Error::from_raw_os_error(libc::ECONNRESET)),
        Ok(count) => Ok(count),
        Err(_) => Err(Error::last_os_error()),
    }
}

/// Returns all descriptors that have come with a message.
///
/// # Safety
/// The system has filled the message in, and its control buffer lives.
unsafe fn descriptors(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut found = Vec::new();
    // SAFETY: the caller's promise; the macros check the lengths.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if ((*header).cmsg_level, (*header).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let bytes = (*header).cmsg_len - libc::CMSG_LEN(0).to_usize();
                let first = libc::CMSG_DATA(header).cast::<RawFd>();
                for at in 0..bytes / size_of::<RawFd>() {
                    found.push(OwnedFd::from_raw_fd(first.add(at).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    found
}
