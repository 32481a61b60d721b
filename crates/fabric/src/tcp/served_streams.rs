//! The streams that a process serves, and their events: [`ServedStreams`] by the system.

use std::io::Result;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::connections::{Next, ServedStreams};
use super::epoll::Epoll;
use super::exposures::Exposures;
use super::served::{BUFFER_BYTES, Served};

/// The streams that a process serves.
pub struct SystemStreams {
    epoll: Arc<Epoll>,
    exposures: Arc<Exposures>,
}

impl SystemStreams {
    /// Makes those whose events this list reports and whose requests access this memory.
    pub fn new(epoll: &Arc<Epoll>, exposures: &Arc<Exposures>) -> SystemStreams {
        SystemStreams { epoll: epoll.clone(), exposures: exposures.clone() }
    }
}

impl ServedStreams for SystemStreams {
    type Served = Served;
    const BUFFER_BYTES: usize = BUFFER_BYTES;

    fn add(&self, served: &Served, events: i32, number: u64) -> Result<()> {
        self.epoll.add(served.stream().as_fd(), events, number)
    }

    fn change(&self, served: &Served, events: i32, number: u64) -> Result<()> {
        self.epoll.change(served.stream().as_fd(), events, number)
    }

    fn serve(&self, served: &mut Served, buffer: &mut [u8]) -> Next {
        served.turn(&self.exposures, buffer)
    }
}
