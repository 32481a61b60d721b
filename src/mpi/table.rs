//! Predefined datatypes and operations by handle: one multiply, one load and one compare, in every
//! ABI. The handles of predefined objects never change, so the table is made once.

use super::constants::{Constants, PREDEFINED, op_handle};
use super::handle::{Abi, Handle};
use crate::datatype::basic::Basic;
use crate::datatype::reduce::{OPS, Op, PredefinedOp};
use crate::number::Number;
use core::ffi::CStr;

/// Entries of a table; a power of two, and enough more than handles that a multiplier without
/// collisions is found soon.
const ENTRIES: usize = 1024;
const BITS: u32 = ENTRIES.trailing_zeros();

/// A map from handles to small values without collisions. The places are in the table itself, so
/// that a call that has the table needs no load to find them.
pub struct HandleTable<T> {
    multiplier: u64,
    /// the handle of each place. A free place has a handle that belongs to another one, so that a
    /// handle that is found where it belongs has a value.
    handles: [Handle; ENTRIES],
    values: [T; ENTRIES],
}

impl<T: Copy> HandleTable<T> {
    /// A table of `pairs`; of equal handles the first counts.
    ///
    /// # Panics
    /// If there are none; or no multiplier is free of collisions: there would have to be several
    /// hundred handles.
    fn new(pairs: &[(Handle, T)]) -> HandleTable<T> {
        let mut multiplier: u64 = 0x9e37_79b9_7f4a_7c15;
        for _ in 0..1_000_000 {
            if let Some(table) = Self::fill(multiplier, pairs) {
                return table;
            }
            multiplier = multiplier.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(2) | 1;
        }
        panic!("no table for {} handles", pairs.len());
    }

    fn fill(multiplier: u64, pairs: &[(Handle, T)]) -> Option<HandleTable<T>> {
        // The place of handle 0 is the first.
        let not_first = (1..).find(|handle| index(multiplier, *handle) != 0)?;
        let (mut handles, mut values) = ([0; ENTRIES], [pairs[0].1; ENTRIES]);
        handles[0] = not_first;
        for (handle, value) in pairs {
            let place = index(multiplier, *handle);
            if index(multiplier, handles[place]) != place {
                (handles[place], values[place]) = (*handle, *value);
            } else if handles[place] != *handle {
                return None;
            }
        }
        Some(HandleTable { multiplier, handles, values })
    }

    /// Returns the value of `handle`, if it is predefined. A handle as the caller passed it may be
    /// given: with garbage in the upper bits of its register it is not found.
    #[inline(always)]
    pub fn find(&self, handle: Handle) -> Option<&T> {
        let place = index(self.multiplier, handle);
        (self.handles[place] == handle).then_some(&self.values[place])
    }
}

#[inline(always)]
fn index(multiplier: u64, handle: Handle) -> usize {
    (handle.to_u64().wrapping_mul(multiplier) >> (u64::BITS - BITS)).to_usize()
}

/// The properties of a predefined datatype that need no call of the host MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predefined {
    /// the kind of its elements
    pub basic: Basic,
    /// bytes of data (MPI_Type_size)
    pub size: u16,
    /// `size` if elements follow each other without holes, and 0 otherwise
    pub dense_size: u32,
}

impl Predefined {
    fn new(basic: Basic) -> Predefined {
        let (size, is_dense) = (basic.size().low_u16(), basic.size() == basic.extent());
        Predefined { basic, size, dense_size: if is_dense { u32::from(size) } else { 0 } }
    }

    /// Returns whether elements follow each other without holes.
    pub fn is_dense(&self) -> bool {
        self.dense_size > 0
    }
}

/// The tables of an MPI.
pub struct Tables {
    /// predefined datatypes
    pub types: HandleTable<Predefined>,
    /// predefined operations
    pub ops: HandleTable<Op>,
    /// MPI_BYTE
    pub byte: Handle,
    /// a type of signed integers of eight bytes
    pub word: Handle,
    /// MPI_MIN
    pub min: Handle,
    /// MPI_SUM
    pub sum: Handle,
}

impl Tables {
    /// The tables for an ABI with these constants; `resolve` finds Open MPI's objects.
    pub fn new(
        abi: Abi,
        constants: &Constants,
        resolve: impl Fn(&'static CStr) -> usize + Copy,
    ) -> Tables {
        let types: Vec<_> = PREDEFINED
            .iter()
            .filter_map(|known| {
                let handle = known.handle(abi, resolve);
                let absent = handle == 0 || handle == constants.datatype_null;
                (!absent).then(|| (handle, Predefined::new(known.basic)))
            })
            .collect();
        let op = |known: &PredefinedOp| (op_handle(known, abi, resolve), known.op);
        let ops: Vec<_> = OPS.iter().map(op).collect();
        let first = |basic| {
            let found = types.iter().find(|(_, known)| known.basic == basic);
            found.map_or(0, |(handle, _)| *handle)
        };
        let (byte, word) = (first(Basic::Byte), first(Basic::I64));
        let [min, sum] = [Op::Min, Op::Sum].map(|op| ops[op as usize].0);
        let (types, ops) = (HandleTable::new(&types), HandleTable::new(&ops));
        Tables { types, ops, byte, word, min, sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_finds_its_handles_and_no_others() {
        let pairs: Vec<(Handle, u8)> = (0..120).map(|n| (0x4c00_0100 + 7 * n, n as u8)).collect();
        let table = HandleTable::new(&pairs);
        for (handle, value) in pairs {
            assert_eq!(table.find(handle), Some(&value));
            assert_eq!(table.find(handle + 1), None);
        }
        assert_eq!(table.find(0), None);
    }
}
