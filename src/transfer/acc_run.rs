//! Types for all files of the accumulates: a run of elements, and how the elements are protected.

use crate::datatype::basic::Basic;
use crate::datatype::reduce::Op;
use crate::epoch::lock::passes::Others;
use crate::number::Number;

/// The protection of the elements against other accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// none: the call has one element, and may take the target's accumulate lock later
    Single,
    /// none yet: the call has several elements, and must take the lock
    Several,
    /// the lock is held; a call on a single word may still change that word
    Held,
    /// no other call changes the elements now
    Alone,
}

impl Guard {
    /// Returns the protection of a holder of the accumulate lock.
    #[inline(always)]
    pub fn under_lock(others: Others) -> Guard {
        match others {
            Others::OnSingleWords => Guard::Held,
            Others::None => Guard::Alone,
        }
    }
}

/// Elements that are contiguous at the target and in the origin's buffers.
#[derive(Clone, Copy)]
pub struct AccRun {
    /// address at the target
    pub there: u64,
    /// their kind
    pub basic: Basic,
    /// their number
    pub count: usize,
    /// operands; not used for MPI_NO_OP
    pub origin: *const u8,
    /// buffer for the old values
    pub result: Option<*mut u8>,
}

impl AccRun {
    /// Bytes from the first element to the end of the last.
    pub fn bytes(&self) -> u64 {
        (self.count * self.basic.extent()).to_u64()
    }

    /// Returns the first `count` elements, and the rest.
    pub fn split(self, count: usize) -> (AccRun, AccRun) {
        let bytes = count * self.basic.extent();
        let rest = AccRun {
            there: self.there + bytes.to_u64(),
            count: self.count - count,
            origin: self.origin.wrapping_add(bytes),
            result: self.result.map(|result| result.wrapping_add(bytes)),
            ..self
        };
        (AccRun { count, ..self }, rest)
    }

    /// Whether the operation replaces all bytes without a result, so that they need not be read.
    pub fn is_overwritten(&self, op: Op) -> bool {
        let dense = self.basic.size() == self.basic.extent();
        op == Op::Replace && self.result.is_none() && dense
    }
}
