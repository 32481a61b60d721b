//! An accumulate as plain data, for the transport that has it carried out at the target: the
//! operation, the type of the elements, and their protection there. `datatype::reduce` combines
//! elements; this file only decides which combinations there are.

use crate::datatype::basic::Basic;
use crate::datatype::reduce::{self, OPS, Op, needs_lock, pairs, pairs_in_mpis};
use crate::number::Number;

/// An operation on elements of a predefined type that `datatype::reduce` carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    op: Op,
    basic: Basic,
}

const _: () = {
    let mut index = 0;
    while index < Basic::ALL.len() {
        assert!(Basic::ALL[index].extent().is_power_of_two());
        index += 1;
    }
};

impl Reduction {
    /// Returns the operation on elements of a type, if there is one.
    #[inline]
    pub fn new(op: Op, basic: Basic) -> Option<Reduction> {
        (pairs(op, basic) || pairs_in_mpis(op, basic)).then_some(Reduction { op, basic })
    }

    /// Returns the operation on elements of a type if the standard defines it.
    #[inline]
    pub fn of_standard(op: Op, basic: Basic) -> Option<Reduction> {
        pairs(op, basic).then_some(Reduction { op, basic })
    }

    /// Decodes the numbers of the operation and of the type.
    pub fn from_numbers([op, basic]: [u8; 2]) -> Option<Reduction> {
        let op = OPS.get(op.to_usize())?.op;
        Reduction::new(op, *Basic::ALL.get(basic.to_usize())?)
    }

    /// Returns the numbers of the operation and of the type.
    #[inline]
    pub fn numbers(self) -> [u8; 2] {
        [self.op as u8, self.basic as u8]
    }

    /// The operation.
    pub fn op(self) -> Op {
        self.op
    }

    /// The type of the elements.
    pub fn basic(self) -> Basic {
        self.basic
    }

    /// Bytes from one element to the next: a power of two.
    #[inline]
    pub fn extent(self) -> u64 {
        self.basic.extent().to_u64()
    }

    /// The number of whole elements in `bytes` bytes.
    #[inline]
    pub fn elements(self, bytes: u64) -> u64 {
        bytes >> self.extent().trailing_zeros()
    }

    /// The bytes of the whole elements in `bytes` bytes.
    #[inline]
    pub fn whole(self, bytes: u64) -> u64 {
        bytes & !(self.extent() - 1)
    }

    /// Whether it has operands.
    #[inline]
    pub fn has_operands(self) -> bool {
        self.op != Op::NoOp
    }

    /// Whether elements at this address can be changed under this protection.
    #[inline]
    pub fn fits(self, protection: Protection, at: u64) -> bool {
        let target = core::ptr::without_provenance(at.to_usize());
        protection != Protection::Atomic || !needs_lock(self.basic, target)
    }
}

/// Combines elements: operation, type, elements at the target, operands, place for the old elements
/// if they are wanted, number of elements.
pub type ElementsCombiner = unsafe fn(Op, Basic, *mut u8, *const u8, Option<*mut u8>, usize);

/// The protection of the elements of a target against other accumulates, which the origin has made
/// sure of. It decides how the target changes them (`docs/decisions/0004`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Protection {
    /// none: each element is changed by one atomic operation of the processor
    Atomic = 0,
    /// the origin holds the target's accumulate lock
    Locked = 1,
    /// no other accumulate changes the elements
    Alone = 2,
    /// the target has taken its accumulate lock for the origin ([`take_lock`]), and knows whether
    /// calls on single words may change the elements
    ///
    /// [`take_lock`]: crate::remote::AtTarget::take_lock
    UnderLock = 3,
}

impl Protection {
    /// Decodes a number.
    pub fn from_number(number: u64) -> Option<Protection> {
        use Protection::{Alone, Atomic, Locked, UnderLock};
        [Atomic, Locked, Alone, UnderLock].into_iter().find(|known| *known as u64 == number)
    }

    /// Returns the function that combines elements under this protection.
    pub fn combine(self) -> ElementsCombiner {
        match self {
            Protection::Atomic => reduce::accumulate,
            Protection::Locked | Protection::UnderLock => reduce::accumulate_locked,
            Protection::Alone => reduce::accumulate_exclusive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "x87 instructions")]
    fn numbers_name_what_reduce_carries_out_and_nothing_else() {
        let numbers = (0..=u8::MAX).flat_map(|op| (0..=u8::MAX).map(move |basic| [op, basic]));
        let known: Vec<_> = numbers.filter_map(Reduction::from_numbers).collect();
        assert!(known.len() > Basic::ALL.len());
        for reduction in known {
            assert_eq!(Reduction::from_numbers(reduction.numbers()), Some(reduction));
            let (op, basic) = (reduction.op(), reduction.basic());
            let mut element = [[0u8; 32]; 2];
            let [target, origin] = element.each_mut().map(|bytes| bytes.as_mut_ptr());
            // SAFETY: both have room for an element, and are local variables.
            unsafe {
                crate::datatype::reduce::accumulate_exclusive(op, basic, target, origin, None, 1);
            }
        }
        assert_eq!(Reduction::from_numbers([Op::Sum as u8, Basic::Packed as u8]), None);
        assert_eq!(Reduction::from_numbers([Op::Sum as u8, u8::MAX]), None);
        assert_eq!(Reduction::from_numbers([u8::MAX, Basic::I32 as u8]), None);
    }

    #[test]
    fn only_aligned_words_are_changed_without_protection() {
        let sum = |basic| Reduction::new(Op::Sum, basic).unwrap();
        assert!(sum(Basic::F64).fits(Protection::Atomic, 8));
        assert!(!sum(Basic::F64).fits(Protection::Atomic, 12));
        assert!(sum(Basic::F64).fits(Protection::Locked, 12));
        assert!(!sum(Basic::Complex64).fits(Protection::Atomic, 16));
        assert!(sum(Basic::Complex64).fits(Protection::Alone, 3));
        assert_eq!(Protection::from_number(1), Some(Protection::Locked));
        assert_eq!(Protection::from_number(4), None);
    }
}
