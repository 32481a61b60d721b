//! Arithmetic of C's `long double` on x86-64, which Rust does not have: the x87 instructions. Sums
//! and products are rounded to 64 bits of precision, as the ABI sets the x87.
//!
//! Invariant: only the ten bytes of the number are computed with; the six after them come from the
//! left operand.

use core::arch::asm;
use core::cmp::Ordering;
use core::ops::{Add, Mul, Sub};

use super::element::LongDouble;

macro_rules! arithmetic {
    ($($operator:ident $method:ident $instruction:literal;)*) => {$(
        impl $operator for LongDouble {
            type Output = LongDouble;
            fn $method(mut self, other: LongDouble) -> LongDouble {
                // SAFETY: reads and writes ten bytes of two live values of sixteen; the x87 stack
                // is empty before, as its registers are all clobbered, and empty after.
                unsafe {
                    asm!(
                        "fld tbyte ptr [{left}]",
                        "fld tbyte ptr [{right}]",
                        $instruction,
                        "fstp tbyte ptr [{left}]",
                        left = in(reg) &raw mut self,
                        right = in(reg) &raw const other,
                        out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                        out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                        options(nostack),
                    );
                }
                self
            }
        }
    )*};
}

arithmetic! {
    Add add "faddp st(1), st";
    Sub sub "fsubp st(1), st";
    Mul mul "fmulp st(1), st";
}

impl PartialOrd for LongDouble {
    fn partial_cmp(&self, other: &LongDouble) -> Option<Ordering> {
        let (above, below, unordered): (u8, u8, u8);
        // SAFETY: reads ten bytes of two live values of sixteen; the x87 stack is empty before, as
        // its registers are all clobbered, and empty after.
        unsafe {
            asm!(
                "fld tbyte ptr [{right}]",
                "fld tbyte ptr [{left}]",
                "fucomip st, st(1)",
                "fstp st(0)",
                "seta {above}",
                "setb {below}",
                "setp {unordered}",
                left = in(reg) self,
                right = in(reg) other,
                above = out(reg_byte) above,
                below = out(reg_byte) below,
                unordered = out(reg_byte) unordered,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack, readonly),
            );
        }
        match (unordered, above, below) {
            (0, 0, 0) => Some(Ordering::Equal),
            (0, 0, _) => Some(Ordering::Less),
            (0, _, _) => Some(Ordering::Greater),
            _ => None,
        }
    }
}

impl PartialEq for LongDouble {
    fn eq(&self, other: &LongDouble) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}
