//! This process on a TCP network: the memory that it exposes, and its service thread, which is
//! started for the first connection. Nothing is registered with a device and nothing is pinned, so
//! memory of the user needs no preparation.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use parking_lot::Mutex;

use super::exposures::Exposures;
use super::origin_end::TcpLink;
use super::page_probes;
use super::service_thread::ServiceThread;
use super::serving::Serving;
use super::stream_options;
use crate::error::{Error, Result};
use crate::request::MemoryOf;
use crate::sys::own_sockets;
use crate::sys::processors::Processors;

/// This process on a TCP network.
#[derive(Default)]
pub struct TcpDevice {
    exposures: Arc<Exposures>,
    thread: Mutex<Option<Arc<ServiceThread>>>,
    /// those on which the service thread may run; `None`: those of the thread that starts it
    processors: Mutex<Option<Processors>>,
}

impl TcpDevice {
    /// Starts without connections.
    pub fn open() -> TcpDevice {
        TcpDevice::default()
    }

    /// Exposes memory to other processes, and returns its key.
    pub fn expose(&self, at: u64, bytes: u64, owner: MemoryOf) -> Result<u32> {
        self.exposures.add(at, bytes, owner)
    }

    /// Ends an exposure; no request touches the memory afterwards.
    pub fn conceal(&self, key: u32) {
        self.exposures.remove(key);
    }

    /// Fails if a buffer of the user cannot be read at its beginning or at its end.
    pub fn buffer(&self, at: u64, bytes: u64) -> Result<()> {
        match [at, at + (bytes - 1)].into_iter().find(|address| !page_probes::is_readable(*address))
        {
            Some(_) => Err(Error::OriginFault { address: at }),
            None => Ok(()),
        }
    }

    /// Number of exposures, and their bytes.
    pub fn exposed(&self) -> (u64, u64) {
        self.exposures.counts()
    }

    /// Number of connections that this process serves.
    pub fn accepted(&self) -> u64 {
        self.thread.lock().as_ref().map_or(0, |thread| thread.served())
    }

    /// Lets the service thread run on these processors, too.
    pub fn serve_on(&self, more: &Processors) {
        let mut processors = self.processors.lock();
        let all = processors.get_or_insert_with(Processors::none);
        all.add(more);
        let all = *all;
        drop(processors);
        if let Some(thread) = &*self.thread.lock() {
            thread.run_on(all);
        }
    }

    /// Lets the calling thread serve other processes until the returned value is dropped; `None` if
    /// there is nothing to serve.
    pub fn serving(&self) -> Option<Serving> {
        self.thread.lock().clone().map(Serving::begin)
    }

    /// Lets the service thread carry out what it leaves to a rank that has kept its turn.
    pub fn end_kept_turn(&self) {
        if let Some(thread) = &*self.thread.lock() {
            thread.connections().end_kept_turn();
        }
    }

    fn thread(&self) -> Result<Arc<ServiceThread>> {
        let mut thread = self.thread.lock();
        if let Some(thread) = &*thread {
            return Ok(thread.clone());
        }
        let started = Arc::new(ServiceThread::start(&self.exposures)?);
        if let Some(processors) = *self.processors.lock() {
            started.run_on(processors);
        }
        Ok(thread.insert(started).clone())
    }

    /// Prepares to serve an origin, whose stream [`TcpDevice::adopt`] gets.
    pub fn accept(&self) -> Result<()> {
        self.thread().map(drop)
    }

    /// Serves the stream of an origin.
    pub fn adopt(&self, stream: OwnedFd) {
        // A stream that cannot be prepared is closed, which the origin finds.
        if let (Ok(()), Ok(thread)) = (stream_options::prepare(&stream), self.thread()) {
            thread.adopt(stream);
        }
    }

    /// Prepares to connect to a target.
    pub fn begin(&self) -> Result<TcpOpening> {
        Ok(TcpOpening { thread: self.thread()? })
    }

    /// Returns a stream to this process itself.
    pub fn stream_to_itself(&self) -> Result<OwnedFd> {
        let mut there = None;
        let here = own_sockets::open(|| {
            let (here, other) = UnixStream::pair()?;
            there = Some(other);
            Ok(here)
        });
        let (here, there) = (here.map_err(failed)?, there.expect("it was made"));
        self.adopt(there.into());
        Ok(here.into())
    }
}

/// The origin's end of a connection that is not connected yet.
pub struct TcpOpening {
    thread: Arc<ServiceThread>,
}

impl TcpOpening {
    /// Makes the connection of the stream to the target.
    pub fn connect(self, stream: OwnedFd) -> Result<TcpLink> {
        let sleeps = stream_options::prepare_to_sleep;
        stream_options::prepare(&stream).and_then(|()| sleeps(&stream)).map_err(failed)?;
        self.thread.sender(stream).map(TcpLink::new).map_err(failed)
    }
}

fn failed(error: io::Error) -> Error {
    Error::System { call: "socket", errno: error.raw_os_error().unwrap_or(0) }
}
