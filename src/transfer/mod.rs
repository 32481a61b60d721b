//! Data transfer: put, get and the accumulate calls. Every argument is checked before any byte
//! moves. When a call on memory of the own node returns, its data are at the target, and a flush
//! only makes them visible to others. Small puts that the system copies may wait until then
//! (`fabric::cma::SmallPuts`). Data to or from another node may arrive later, and a flush
//! waits for them.

mod acc;
mod acc_call;
mod acc_run;
mod acc_sides;
pub mod accumulate;
pub mod attributed;
mod block_acc;
mod combine;
pub mod copies;
mod distant;
mod noted;
pub mod put_get;
pub mod scaled;
pub mod single;
pub mod staged;
mod target_acc;
mod word_acc;

use crate::datatype::basic::Basic;
use crate::datatype::reduce::{Op, pairs_in_mpis};
use crate::datatype::type_map::Shape;
use crate::error::{Error, Result};
use crate::fabric::location::Location;
use crate::messages::{self, Message};
use crate::mpi::{Handle, Host};
use crate::rank_numbers::Rank;
use crate::report::{self, Wrong};
use crate::window::address::{By, Reach, TargetRecord};
use crate::window::handles::{HandleMemory, completion};
use crate::window::notifications::Notified;
pub use crate::window::quick_window::Quick;
use crate::window::wide::WideWindow;
use crate::window::wide::target_records::WideTarget;
use crate::window::{LocalWindow, Window, synchronise};
use core::ffi::c_int;

/// A buffer of the origin, as the user described it.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// its address
    pub address: *mut u8,
    /// number of elements
    pub count: i64,
    /// their type
    pub datatype: Handle,
}

/// A place in a window, as the user described it.
#[derive(Clone, Copy, Debug)]
pub struct TargetBuffer {
    /// rank in the window's group
    pub rank: c_int,
    /// displacement in units of the target
    pub disp: i64,
    /// number of elements
    pub count: i64,
    /// their type
    pub datatype: Handle,
}

/// The arguments of MPI_Accumulate, or of MPI_Get_accumulate, which has a result.
#[derive(Clone, Copy)]
pub struct Accumulation {
    /// the operands; not used by MPI_NO_OP
    pub origin: Buffer,
    /// where the old elements go
    pub result: Option<Buffer>,
    /// the elements
    pub target: TargetBuffer,
    /// the operation
    pub op: Handle,
}

/// What every call needs: the host MPI, the window and its memory.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// the host MPI, for datatypes and operations
    pub host: &'static Host,
    /// the window
    pub window: &'a Window,
    /// its memory
    pub node: &'a LocalWindow,
    /// the memory of a handle, if the call is on such memory: then it asks no epoch, and
    /// displacements are bytes
    pub memory: Option<&'a HandleMemory>,
}

/// A target on which an operation is legal now, with its record, which the call looks up once.
#[derive(Clone, Copy)]
pub struct OpenTarget<'a> {
    place: &'a Place<'a>,
    rank: Rank,
    record: TargetRecord<'a>,
}

impl<'a> OpenTarget<'a> {
    /// Does `work` with the location of `reach` at a displacement, as [`LocalWindow::at`].
    #[inline]
    fn at<R>(
        self,
        place: (i64, Reach),
        by: By,
        work: impl FnOnce(Location<'_>) -> Result<R>,
    ) -> Result<R> {
        match self.place.memory {
            None => self.place.node.at((self.rank, self.record), place, by, work),
            Some(memory) => memory.at(place, by, work),
        }
    }

    /// Whether this process alone accesses it by RMA now.
    #[inline]
    fn is_exclusive(self) -> bool {
        // Others access the memory of a handle, although this process holds the lock.
        self.place.memory.is_none()
            && self.place.window.epochs.is_exclusive(|| self.record.access())
    }

    /// Returns it as a target of another node that this process has contacted.
    #[inline(always)]
    fn contacted(self) -> (&'a WideWindow, &'a WideTarget) {
        match self.record {
            TargetRecord::ManyNodes(part, record) if let Some(target) = record.contacted() => {
                (part, target)
            }
            _ => unreachable!("its memory is on another node"),
        }
    }
}

impl Place<'_> {
    /// Carries out a notified operation on a rank: `operation`, and behind it the notification of a
    /// counter. On MPI_PROC_NULL there is no counter.
    pub fn notified(
        &self,
        (kind, rank, index): (Notified, c_int, c_int),
        operation: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if rank == self.host.constants.proc_null {
            return operation();
        }
        let rank = self.node.target(rank)?;
        self.window.notification(self.node, rank, index.into())?.behind(kind, operation)
    }

    /// Orders what this process sends to a rank, on which an operation is legal now, behind what it
    /// has sent there ([`completion::order`]).
    pub fn order(&self, rank: c_int) -> Result<()> {
        self.access(rank)?.map_or(Ok(()), |to| completion::order(self.node, to.rank))
    }

    /// Waits for the results of accumulates on single words of a rank
    /// ([`LocalWindow::wait_for_results`]).
    pub fn wait_for_results(&self, rank: c_int) -> Result<()> {
        self.node.target(rank).map_or(Ok(()), |rank| self.node.wait_for_results(rank))
    }

    /// Returns the target of a rank if an operation on it is legal now, or `None` for
    /// MPI_PROC_NULL. Takes a lock that was asked for.
    #[inline(always)]
    fn access(&self, rank: c_int) -> Result<Option<OpenTarget<'_>>> {
        let found = self.access_record(rank)?;
        Ok(found.map(|(rank, record)| OpenTarget { place: self, rank, record }))
    }

    /// Returns the rank and the record of the target.
    #[inline(always)]
    fn access_record(&self, rank: c_int) -> Result<Option<(Rank, TargetRecord<'_>)>> {
        let found = self.record(rank)?;
        if let Some((rank, record)) = found
            && self.memory.is_none()
            && !self.window.epochs.access.opens(|| record.access())
        {
            self.first_access(rank, record)?;
        }
        Ok(found)
    }

    /// Returns the rank and the record of a target, whether or not an operation on it is legal now.
    #[inline(always)]
    fn record(&self, rank: c_int) -> Result<Option<(Rank, TargetRecord<'_>)>> {
        match self.node.target(rank) {
            Ok(rank) => Ok(Some((rank, self.window.record(self.node, rank)))),
            Err(_) if rank == self.host.constants.proc_null => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fails unless an operation on a target that is not open is the first one after a fence, or
    /// the first use of a lock that was asked for.
    #[cold]
    fn first_access(&self, rank: Rank, record: TargetRecord<'_>) -> Result<()> {
        match self.window.epochs.may_access(|| record.access()) {
            Ok(()) => synchronise::end_opening(self.node),
            Err(error) => self.node.needs_asked(self.window, rank, error),
        }
    }

    /// Carries out an operation on MPI_PROC_NULL: moves nothing, but a wrong count or datatype is
    /// still an error.
    #[cold]
    fn on_proc_null(
        &self,
        buffers: impl IntoIterator<Item = Buffer>,
        target: TargetBuffer,
    ) -> Result<()> {
        for buffer in buffers {
            elements(&messages::ORIGIN_COUNT, buffer.count)?;
            self.shape(buffer.datatype)?;
        }
        elements(&messages::TARGET_COUNT, target.count)?;
        self.shape(target.datatype).map(drop)
    }

    /// Returns the type map of a datatype.
    fn shape(&self, datatype: Handle) -> Result<Shape> {
        self.host.shape(self.node.comm(), datatype)
    }

    /// Returns the bytes of a transfer between predefined types without holes, or `None` for
    /// anything else, wrong arguments included.
    #[inline(always)]
    fn dense_transfer(&self, origin: Buffer, target: TargetBuffer) -> Option<u64> {
        let bytes = self.dense_bytes(origin.count, origin.datatype)?;
        let is_same = origin.datatype == target.datatype && origin.count == target.count;
        let is_as_long = || self.dense_bytes(target.count, target.datatype) == Some(bytes);
        (is_same || is_as_long()).then_some(bytes)
    }

    /// Returns the bytes of `count` elements of a predefined type without holes, or `None` for
    /// anything else, wrong arguments included.
    #[inline]
    fn dense_bytes(&self, count: i64, datatype: Handle) -> Option<u64> {
        let known = self.host.tables.types.find(datatype)?;
        if known.is_dense() && count >= 0 {
            count.cast_unsigned().checked_mul(u64::from(known.size))
        } else {
            None
        }
    }
}

/// Checks a number of elements.
fn elements(bad: &'static Message, count: i64) -> Result<u64> {
    u64::try_from(count).map_err(|_| Error::Argument(bad, count))
}

/// Checks that data of one side fit into the other.
fn fits(bytes: u64, room: u64) -> Result<()> {
    if bytes <= room { Ok(()) } else { Err(Error::Truncated { bytes, room }) }
}

/// Checks that a buffer that is used has an address.
#[inline]
fn not_null(address: *mut u8, null: &'static Message) -> Result<()> {
    if address.is_null() { Err(Error::Wrong(null)) } else { Ok(()) }
}

/// Returns the error of an operation that the standard does not define for a kind of elements,
/// unless MPIs carry it out.
#[cold]
fn unpaired(op: Op, basic: Basic) -> Result<()> {
    let error = Error::Wrong(&messages::OP_UNDEFINED);
    match pairs_in_mpis(op, basic) {
        true => report::carry_out("MPI_Accumulate or its like", Wrong::Pair, error),
        false => Err(error),
    }
}
