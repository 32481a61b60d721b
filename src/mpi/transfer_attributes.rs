//! Attributes of a transfer: what it is to do beyond its bytes (docs/decisions/0033). They are an
//! argument of the calls on memory handles, and a hint of a window. `transfer::attributed` carries
//! them out.

use crate::error::{Error, Result};
use crate::messages;
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

/// The words of the hint `fompi_attributes`.
const WORDS: [(&str, c_int); 4] =
    [("ordered", ORDERED), ("remote", REMOTE), ("atomic", ATOMIC), ("blocking", BLOCKING)];

/// The attributes of one transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferAttributes {
    bits: c_int,
    /// the counter of the target that it notifies
    pub counter: Option<u32>,
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

    /// Returns the attributes that a text lists, separated by commas. Other words are ignored.
    pub fn named(text: &str) -> TransferAttributes {
        let is_in = |word: &&(&str, c_int)| text.split(',').any(|given| given.trim() == word.0);
        let bits = WORDS.iter().filter(is_in).fold(0, |bits, (_, bit)| bits | bit);
        TransferAttributes { bits, counter: None }
    }

    /// Returns the text of [`TransferAttributes::named`].
    pub fn names(self) -> String {
        let has = WORDS.iter().filter(|(_, bit)| self.has(*bit));
        has.map(|(word, _)| *word).collect::<Vec<_>>().join(",")
    }

    /// Returns these and more attributes.
    pub fn and(self, bits: c_int) -> TransferAttributes {
        TransferAttributes { bits: self.bits | bits, ..self }
    }

    /// The attributes without a notification, as bits.
    pub fn bits(self) -> c_int {
        self.bits
    }

    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self.bits == 0
    }

    /// Whether one of these is among them.
    pub fn has(self, attribute: c_int) -> bool {
        self.bits & attribute != 0
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
    fn a_list_names_attributes() {
        let of = |text| TransferAttributes::named(text).names();
        assert_eq!(of("blocking, ordered"), "ordered,blocking");
        assert_eq!(of("remote,faster,atomic,"), "remote,atomic");
        for none in ["", "none", "order", "ordered remote"] {
            assert!(TransferAttributes::named(none).is_none(), "{none}");
        }
    }

    #[test]
    fn a_call_with_a_request_does_not_block() {
        assert!(TransferAttributes::of(BLOCKING, true).is_err());
        assert!(TransferAttributes::of(REMOTE | ORDERED | ATOMIC, true).is_ok());
    }
}
