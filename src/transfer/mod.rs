//! The movement: put, get and the accumulate calls. Every argument is checked before anything
//! moves. When a call on memory of the own node returns, its data are at the target: what is left
//! for a flush is their visibility to others. What goes to another node is on its way, and a flush
//! waits for it.

mod acc;
pub mod accumulate;
mod blocks;
pub mod bytes;
mod coalesce;
mod combine;
#[cfg(test)]
mod conformance;
mod distant;
pub mod put_get;
pub mod single;
mod unmapped;
mod words;

use crate::datatype::basic::{Basic, Op, pairs_in_mpis};
use crate::datatype::layout::Shape;
use crate::error::{Class, Error, Result};
use crate::mpi::{Entry, Handle, Host};
use crate::window::report::{self, Wrong};
use crate::window::{Carrier, LocalWindow, Window, registry};
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
pub struct Target {
    /// rank in the window's group
    pub rank: c_int,
    /// displacement in units of the target
    pub disp: i64,
    /// number of elements
    pub count: i64,
    /// their type
    pub datatype: Handle,
}

/// Who carries out a transfer, and under which window.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// the MPI underneath, for datatypes and operations
    pub host: &'static Host,
    /// the window
    pub window: &'a Window,
    /// its memory
    pub node: &'a LocalWindow,
}

/// Where a quick call goes: everything that it needs has been found, and nothing is wrong with it.
#[derive(Clone, Copy)]
pub struct Quick<'a> {
    /// the MPI underneath
    pub host: &'static Host,
    window: &'a Window,
    node: &'a LocalWindow,
    rank: u32,
}

impl<'a> Quick<'a> {
    /// Finds a window of ours, and a target that may be accessed now. Whatever is unusual is for
    /// the call in full, which knows the error too.
    #[inline(always)]
    pub fn new(win: usize, rank: c_int, entry: Entry) -> Option<Quick<'a>> {
        let host = Host::known(entry)?;
        let window = registry::lookup(host.handle(win))?;
        let Carrier::Node(node) = &window.carrier else { return None };
        let rank = rank as u32;
        let open = rank < node.size && window.epochs.is_open(rank);
        open.then_some(Quick { host, window, node, rank })
    }

    /// Where an element is that one atomic instruction is to change now.
    #[inline(always)]
    fn element(&self, disp: i64, bytes: u64) -> Option<*mut u8> {
        self.node.element_within(self.rank, disp, bytes)
    }

    /// Where so many bytes are, if they are all inside of the window.
    #[inline(always)]
    fn address(&self, disp: i64, bytes: u64) -> Option<*mut u8> {
        self.node.address_within(self.rank, disp, bytes)
    }
}

impl Place<'_> {
    /// The target's rank, if an operation on it is legal now. `None`: MPI_PROC_NULL.
    #[inline]
    fn access(&self, rank: c_int) -> Result<Option<u32>> {
        match self.node.target(rank) {
            Ok(rank) => {
                self.window.epochs.may_access(rank)?;
                Ok(Some(rank))
            }
            Err(_) if rank == self.host.constants.proc_null => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// An operation on MPI_PROC_NULL: nothing moves, but what is wrong with a count or a datatype
    /// is still an error.
    #[cold]
    fn on_proc_null(
        &self,
        buffers: impl IntoIterator<Item = Buffer>,
        target: Target,
    ) -> Result<()> {
        for buffer in buffers {
            elements("count", buffer.count)?;
            self.shape(buffer.datatype)?;
        }
        elements("target count", target.count)?;
        self.shape(target.datatype).map(drop)
    }

    /// What a datatype is made of.
    fn shape(&self, datatype: Handle) -> Result<Shape> {
        self.host.shape(self.node.comm(), datatype)
    }

    /// The bytes of `count` elements of a predefined type without holes. `None`: anything else,
    /// wrong arguments too.
    #[inline]
    fn dense_bytes(&self, count: i64, datatype: Handle) -> Option<u64> {
        let known = self.host.tables.types.find(datatype)?;
        if known.dense && count >= 0 {
            (count as u64).checked_mul(u64::from(known.size))
        } else {
            None
        }
    }
}

/// Checks a number of elements.
fn elements(what: &'static str, count: i64) -> Result<u64> {
    u64::try_from(count).map_err(|_| Error::Argument(Class::Count, what, count))
}

/// Checks that data of one side fit into the other.
fn fits(bytes: u64, room: u64) -> Result<()> {
    if bytes <= room { Ok(()) } else { Err(Error::Truncated { bytes, room }) }
}

/// Checks that a buffer that is used has an address.
#[inline]
fn not_null(address: *mut u8, what: &'static str) -> Result<()> {
    if address.is_null() { Err(Error::Wrong(Class::Buffer, what)) } else { Ok(()) }
}

/// An operation that the standard does not pair with a kind of elements.
#[cold]
fn unpaired(op: Op, basic: Basic) -> Result<()> {
    let error = Error::Wrong(Class::Op, "operation that does not go with the datatype");
    match pairs_in_mpis(op, basic) {
        true => report::carry_out("MPI_Accumulate or its like", Wrong::Pair, error),
        false => Err(error),
    }
}
