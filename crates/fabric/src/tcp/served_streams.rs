//! The streams that a process serves, and their events: [`ServedStreams`] by the system.

use std::io::Result;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use super::connections::{Next, ServedStreams};
use super::descriptors::Descriptors;
use super::exposures::Exposures;
use super::served::{BUFFER_BYTES, Served};
use super::stream_options;

/// The streams that a process serves.
pub struct SystemStreams {
    descriptors: Arc<Descriptors>,
    exposures: Arc<Exposures>,
}

impl SystemStreams {
    /// Makes those that are in the list of these descriptors and whose requests access this memory.
    pub fn new(descriptors: &Arc<Descriptors>, exposures: &Arc<Exposures>) -> SystemStreams {
        SystemStreams { descriptors: descriptors.clone(), exposures: exposures.clone() }
    }
}

impl ServedStreams for SystemStreams {
    type Served = Served;
    const BUFFER_BYTES: usize = BUFFER_BYTES;

    fn add(&self, served: &Served, events: i32, number: u64) -> Result<()> {
        self.descriptors.streams.add(served.stream().as_fd(), events, number)
    }

    fn change(&self, served: &Served, events: i32, number: u64) -> Result<()> {
        self.descriptors.streams.change(served.stream().as_fd(), events, number)
    }

    fn serve(&self, served: &mut Served, buffer: &mut [u8]) -> Next {
        served.turn(&self.exposures, buffer)
    }

    fn acknowledge(&self, served: &Served) {
        stream_options::acknowledge(served.stream());
    }

    fn wake_thread(&self, wakes: bool) {
        self.descriptors.wake_for_streams(wakes);
    }

    fn start_timer(&self, time: Duration) {
        self.descriptors.start_turn_timer(time);
    }
}
