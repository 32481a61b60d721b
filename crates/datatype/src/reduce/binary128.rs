//! Arithmetic of C's `long double` on AArch64: IEEE binary128, for which the processor has no
//! instructions. Sums and products are those of the compiler's own functions, which C programs
//! call, too. Comparisons compare the bits.

use core::arch::aarch64::uint8x16_t;
use core::arch::asm;
use core::cmp::Ordering;
use core::mem::transmute;
use core::ops::{Add, Mul, Sub};

use super::element::LongDouble;

unsafe extern "C" {
    // Of the compiler's run-time library. They take two numbers in v0 and v1, and return one in v0:
    // a type that Rust does not have, so they are called by hand.
    fn __addtf3();
    fn __subtf3();
    fn __multf3();
}

/// Returns a number as a register holds it.
fn in_register(number: LongDouble) -> uint8x16_t {
    // SAFETY: sixteen bytes on either side; all bits are a value.
    unsafe { transmute::<[u8; 16], uint8x16_t>(number.0) }
}

macro_rules! arithmetic {
    ($($operator:ident $method:ident $function:ident;)*) => {$(
        impl $operator for LongDouble {
            type Output = LongDouble;
            fn $method(self, other: LongDouble) -> LongDouble {
                let (mut left, right) = (in_register(self), in_register(other));
                // SAFETY: a call by the ABI of C, whose registers are clobbered, of a function that
                // accesses no memory of the caller.
                unsafe {
                    asm!(
                        "bl {function}",
                        function = sym $function,
                        inout("v0") left,
                        in("v1") right,
                        clobber_abi("C"),
                    );
                }
                // SAFETY: sixteen bytes on either side; all bits are a value.
                LongDouble(unsafe { transmute::<uint8x16_t, [u8; 16]>(left) })
            }
        }
    )*};
}

arithmetic! {
    Add add __addtf3;
    Sub sub __subtf3;
    Mul mul __multf3;
}

const SIGN: u128 = 1 << 127;
/// The bits of infinity: those of a NaN are more.
const INFINITY: u128 = 0x7fff << 112;

/// Returns an integer that is in the order of the numbers; `None` for a NaN. Both zeros are 0.
fn in_order(number: &LongDouble) -> Option<i128> {
    let bits = u128::from_ne_bytes(number.0);
    let size = (bits & !SIGN).cast_signed();
    let signed = if bits & SIGN != 0 { -size } else { size };
    (bits & !SIGN <= INFINITY).then_some(signed)
}

impl PartialOrd for LongDouble {
    fn partial_cmp(&self, other: &LongDouble) -> Option<Ordering> {
        Some(in_order(self)?.cmp(&in_order(other)?))
    }
}

impl PartialEq for LongDouble {
    fn eq(&self, other: &LongDouble) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}
