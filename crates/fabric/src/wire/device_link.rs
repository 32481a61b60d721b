//! The origin's end of a connection, for each kind of device: posts requests and polls for their
//! completions. As in [`device`](super::device), a new kind is a new variant here.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::Way;
use crate::device_order::DeviceOrder;
use crate::request::{Broken, Local, Order};
use crate::{tcp, verbs};

/// Number of requests for which an RDMA device is asked to have room: 128, and 4 pings.
pub const VERBS_PLACES: usize = 132;

/// How a thread learns that a poll of a link may find something.
#[derive(Clone)]
pub enum News {
    /// it waits in the poll itself
    Asked,
    /// it polls again and again
    Polled,
    /// it sleeps until bytes have come
    Stream(Arc<OwnedFd>),
}

impl News {
    /// Sleeps until there may be news, and for `most` at the longest; returns at once if there is
    /// no way to sleep.
    pub fn wait(&self, most: Duration) {
        match self {
            News::Asked | News::Polled => {}
            News::Stream(stream) => tcp::wait(stream, most),
        }
    }
}

/// The origin's end of a connection.
pub enum Link {
    /// of InfiniBand or RoCE
    Verbs(verbs::VerbsLink),
    /// of TCP
    Tcp(Box<tcp::TcpLink>),
}

impl Link {
    /// Number of requests that can be under way.
    pub fn places(&self) -> usize {
        match self {
            // A device may have room for more than it was asked for.
            Link::Verbs(link) => link.places().min(VERBS_PLACES),
            Link::Tcp(_) => tcp::PLACES,
        }
    }

    /// Largest number of bytes that a request can carry inline.
    pub fn inline_bytes_max(&self) -> u64 {
        match self {
            Link::Verbs(link) => link.inline_bytes_max(),
            Link::Tcp(_) => tcp::INLINE_BYTES_MAX,
        }
    }

    /// Largest number of pieces of this process's memory in a WRITE or READ.
    pub fn sge_max(&self, way: Way) -> usize {
        match self {
            Link::Verbs(link) => link.sge_max(way),
            Link::Tcp(_) => 1,
        }
    }

    /// The order in which the target carries out requests.
    pub fn device_order(&self) -> DeviceOrder {
        match self {
            Link::Verbs(link) => link.device_order(),
            Link::Tcp(_) => DeviceOrder::STRICT,
        }
    }

    /// Whether a WRITE that has completed is done in the target's memory. An adapter may complete
    /// it when the target's adapter has it.
    pub fn answers_show_writes(&self) -> bool {
        match self {
            Link::Verbs(_) => false,
            Link::Tcp(_) => true,
        }
    }

    /// Whether the device sends several requests at once, as [`Order::leaves`] says.
    pub fn gathers(&self) -> bool {
        match self {
            Link::Verbs(_) => false,
            Link::Tcp(_) => true,
        }
    }

    /// Whether the device has failed for good, as far as it has reported.
    pub fn has_failed(&self) -> bool {
        match self {
            Link::Verbs(link) => link.has_failed(),
            Link::Tcp(_) => false,
        }
    }

    /// Whether a request that is not done for a long time means that the device has failed. Over
    /// TCP it means that the target is stopped or busy.
    pub fn ends_in_time(&self) -> bool {
        match self {
            Link::Verbs(_) => true,
            Link::Tcp(_) => false,
        }
    }

    /// Fails if the target's node cannot be reached any more and no completion reports it.
    pub fn check(&mut self) -> Result<(), Broken> {
        match self {
            Link::Verbs(_) => Ok(()),
            Link::Tcp(link) => link.check(),
        }
    }

    /// Whether a request since the last [`Link::forget_refusal`] has met memory that the target's
    /// process may not access, and the connection goes on. An RDMA device ends it.
    pub fn is_refused(&self) -> bool {
        match self {
            Link::Verbs(_) => false,
            Link::Tcp(link) => link.is_refused,
        }
    }

    /// Forgets the refusals so far.
    pub fn forget_refusal(&mut self) {
        match self {
            Link::Verbs(_) => {}
            Link::Tcp(link) => link.is_refused = false,
        }
    }

    /// Posts requests, at most [`CHAIN_MAX`](crate::request::CHAIN_MAX), as one chain.
    /// `pieces`: the memory of a single request in this process, if it is several pieces.
    ///
    /// # Safety
    /// The memory that they name is registered with the given key, and stays so until they are
    /// done. For inline data it is enough that the memory can be read now.
    pub unsafe fn post(&mut self, orders: &[Order], pieces: &[Local]) -> Result<(), Broken> {
        match self {
            // SAFETY: guaranteed by the caller.
            Link::Verbs(link) => unsafe { link.post(orders, pieces) },
            Link::Tcp(link) => {
                // SAFETY: guaranteed by the caller.
                unsafe { link.post(orders) };
                Ok(())
            }
        }
    }

    /// Whether a stream has yet to take [`Kept::Streamed`] memory.
    ///
    /// [`Kept::Streamed`]: super::pool::Kept::Streamed
    pub fn lends(&self) -> bool {
        match self {
            Link::Verbs(_) => false,
            Link::Tcp(link) => link.lends(),
        }
    }

    /// Whether requests that were posted have not left.
    pub fn has_unsent(&self) -> bool {
        match self {
            Link::Verbs(_) => false,
            Link::Tcp(link) => link.has_unsent(),
        }
    }

    /// Returns how a thread learns that a poll may find something.
    pub fn news(&self) -> News {
        match self {
            Link::Verbs(_) => News::Polled,
            Link::Tcp(link) => News::Stream(link.stream().clone()),
        }
    }

    /// Polls for completions. Returns the number of the last request that is known to be done, if
    /// there is a new one; all requests before it are done, too.
    pub fn poll(&mut self) -> Result<Option<u64>, Broken> {
        match self {
            Link::Verbs(link) => link.poll(),
            Link::Tcp(link) => link.poll(),
        }
    }

    /// [`Link::poll`] that sleeps until answers come, for a few milliseconds at most, if the device
    /// can.
    pub fn poll_asleep(&mut self) -> Result<Option<u64>, Broken> {
        match self {
            Link::Verbs(link) => link.poll(),
            Link::Tcp(link) => link.poll_asleep(),
        }
    }
}
