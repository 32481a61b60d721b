//! Transfers with memory of a handle, by the attributes that the call asks for
//! (docs/decisions/0033).

use super::Place;
use super::acc::locked;
use crate::error::{Error, Result};
use crate::messages;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::window::handles::completion;
use crate::window::notifications::Notified;
use core::ffi::c_int;

/// `FOMPI_ORDERED`: the transfer takes effect behind all earlier ones of this process to the rank.
pub const ORDERED: c_int = 1;
/// `FOMPI_REMOTE`: it is complete at the target when it is complete.
pub const REMOTE: c_int = 2;
/// `FOMPI_ATOMIC`: as a whole exclusive with others that have this attribute.
pub const ATOMIC: c_int = 4;
/// `FOMPI_BLOCKING`: it is complete when the call returns.
pub const BLOCKING: c_int = 8;
/// The bit of `FOMPI_NOTIFY`, and the bits of its index above it.
pub const NOTIFY: c_int = 16;
const INDEX_SHIFT: u32 = 8;
const KNOWN: c_int = ORDERED | REMOTE | ATOMIC | BLOCKING | NOTIFY;

/// The attributes of one transfer.
#[derive(Clone, Copy)]
pub struct TransferAttributes {
    bits: c_int,
    /// the counter of the target that it notifies
    counter: Option<u32>,
}

impl TransferAttributes {
    /// Checks attributes. `has_request`: the call returns a request.
    pub fn of(given: c_int, has_request: bool) -> Result<TransferAttributes> {
        let (bits, index) = (given & ((1 << INDEX_SHIFT) - 1), given >> INDEX_SHIFT);
        let notifies = bits & NOTIFY != 0;
        let is_known = bits & !KNOWN == 0 && given >= 0 && (notifies || index == 0);
        if !is_known || has_request && bits & BLOCKING != 0 {
            return Err(Error::Argument(&messages::MEM_ATTRIBUTES, given.into()));
        }
        Ok(TransferAttributes { bits, counter: notifies.then_some(index.cast_unsigned()) })
    }

    fn has(self, attribute: c_int) -> bool {
        self.bits & attribute != 0
    }
}

impl Place<'_> {
    /// Does `work` as a whole exclusively with respect to other such works on a rank, and to its
    /// accumulates of several elements.
    fn exclusively(&self, rank: c_int, work: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.access(rank)? {
            Some(to) => {
                let done = locked(to, 1, |_| work());
                // Those that follow with this attribute are no conflict.
                self.node.conflicts.iter().for_each(|conflicts| conflicts.ordered(to.rank));
                done
            }
            None => work(),
        }
    }

    /// Carries out a transfer with memory of a handle: `work`, as its attributes say.
    pub fn attributed(
        &self,
        rank: Rank,
        kind: Notified,
        attributes: TransferAttributes,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (window, node) = (self.window, self.node);
        if attributes.has(ORDERED) {
            completion::order(node, rank)?;
        }
        let work = || match attributes.has(ATOMIC) {
            false => work(),
            true if kind == Notified::Accumulate => Err(Error::Wrong(&messages::MEM_NOT_ATOMIC)),
            true => self.exclusively(rank.0.cast_signed(), work),
        };
        match attributes.counter {
            None => work()?,
            Some(index) => {
                window
                    .notification_of(node, rank, index.to_u64().cast_signed())?
                    .behind(kind, work)?;
            }
        }
        match (attributes.has(REMOTE), attributes.has(BLOCKING)) {
            (true, _) => completion::complete(window, node, rank),
            (false, true) => completion::complete_here(node, rank),
            (false, false) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_known_bits_and_an_index() {
        let of = |given| TransferAttributes::of(given, false).map(|all| (all.bits, all.counter));
        assert_eq!(of(0), Ok((0, None)));
        assert_eq!(of(ORDERED | BLOCKING), Ok((9, None)));
        assert_eq!(of(NOTIFY), Ok((NOTIFY, Some(0))));
        let most = i32::MAX >> INDEX_SHIFT;
        assert_eq!(of(REMOTE | NOTIFY | most << INDEX_SHIFT), Ok((18, Some(8_388_607))));
        for wrong in [-1, i32::MIN, 32, 128, 1 << INDEX_SHIFT, ORDERED | 5 << INDEX_SHIFT] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_call_with_a_request_does_not_block() {
        assert!(TransferAttributes::of(BLOCKING, true).is_err());
        assert!(TransferAttributes::of(REMOTE | ORDERED | ATOMIC, true).is_ok());
    }
}
