//! The numbers that a constructor of a datatype was called with, as the host MPI returns them.

use crate::error::{Error, Result};
use crate::messages;
use crate::number::Number;

/// The numbers among the arguments of a constructor, from the first to the last. The MPI checked
/// them when the type was made.
#[derive(Clone, Copy)]
pub struct Numbers<'a>(&'a [i64]);

impl<'a> Numbers<'a> {
    /// Starts with all of them.
    pub fn of(numbers: &'a [i64]) -> Numbers<'a> {
        Numbers(numbers)
    }

    /// Returns the next one.
    pub fn next(&mut self) -> Result<i64> {
        Ok(self.list(1)?[0])
    }

    /// Returns the next one, which is a number of elements.
    pub fn length(&mut self) -> Result<u64> {
        u64::try_from(self.next()?).map_err(|_| short())
    }

    /// Returns the next one, which is a number of arguments.
    pub fn count(&mut self) -> Result<usize> {
        Ok(self.length()?.to_usize())
    }

    /// Returns the next `count` of them.
    pub fn list(&mut self, count: usize) -> Result<&'a [i64]> {
        let (list, rest) = self.0.split_at_checked(count).ok_or(short())?;
        self.0 = rest;
        Ok(list)
    }
}

/// The error that the host MPI contradicts itself.
pub fn short() -> Error {
    Error::Wrong(&messages::TYPE_ARGUMENTS)
}

/// Returns `displacement` times `unit` bytes.
pub fn scaled(displacement: i64, unit: i64) -> Result<i64> {
    let too_far = Error::Argument(&messages::TYPE_DISPLACEMENT, displacement);
    displacement.checked_mul(unit).ok_or(too_far)
}
