//! The operands of a scaled accumulate: elements multiplied by a factor, in memory of this process
//! that is sent as the origin of a sum.

use super::{Buffer, Place, elements, not_null};
use crate::datatype::basic::Basic;
use crate::error::{Error, Result};
use crate::messages;
use crate::number::Number;
use crate::window::library_loads::gpu;

/// A complex number: the real and the imaginary part.
#[derive(Clone, Copy)]
#[repr(C)]
struct Complex<T>(T, T);

/// A product as MPI_PROD defines it: integers wrap.
trait Product: Copy {
    fn product(self, other: Self) -> Self;
}

macro_rules! products {
    ($($type:ty, |$a:ident, $b:ident| $product:expr;)*) => {$(
        impl Product for $type {
            fn product(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $product
            }
        }
    )*};
}

products! {
    i32, |a, b| a.wrapping_mul(b);
    i64, |a, b| a.wrapping_mul(b);
    f32, |a, b| a * b;
    f64, |a, b| a * b;
    Complex<f32>, |a, b| Complex(a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0);
    Complex<f64>, |a, b| Complex(a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0);
}

/// Elements that a call sends, in words, so that they are aligned.
pub struct Scaled(Vec<u64>);

impl Scaled {
    /// Returns the elements of a buffer times that at `factor`. `check` fails if the target has no
    /// room for this many bytes.
    ///
    /// # Errors
    /// MPI_ERR_TYPE for a type without a product here, or for memory of a GPU, MPI_ERR_COUNT,
    /// MPI_ERR_BUFFER for a null pointer, MPI_ERR_NO_MEM.
    ///
    /// # Safety
    /// The buffer and one element at `factor` may be read.
    pub unsafe fn of(
        place: &Place<'_>,
        factor: *const u8,
        origin: Buffer,
        check: impl FnOnce(u64) -> Result<()>,
    ) -> Result<Scaled> {
        let wrong = Error::Wrong(&messages::SCALED_TYPE);
        let known = place.host.tables.types.find(origin.datatype).ok_or(wrong.clone())?;
        let count = elements(&messages::ORIGIN_COUNT, origin.count)?;
        let bytes = count.saturating_mul(known.size.into());
        check(bytes)?;
        if bytes > 0 {
            not_null(origin.address, &messages::NULL_ORIGIN)?;
        }
        not_null(factor.cast_mut(), &messages::NULL_FACTOR)?;
        let is_device = |at: *const u8| gpu().is_some_and(|gpu| gpu.is_device(at.addr().to_u64()));
        if is_device(origin.address) || is_device(factor) {
            return Err(wrong);
        }
        let mut scaled = Vec::new();
        let words = bytes.to_usize().div_ceil(size_of::<u64>());
        scaled.try_reserve_exact(words).map_err(|_| Error::NoMemory { bytes })?;
        scaled.resize(words, 0);
        let (from, into, count) = (origin.address, scaled.as_mut_ptr().cast(), count.to_usize());
        // SAFETY: the caller's promise; `scaled` has room for as many elements.
        unsafe {
            match known.basic {
                Basic::I32 => scale::<i32>(factor, from, into, count),
                Basic::I64 => scale::<i64>(factor, from, into, count),
                Basic::F32 => scale::<f32>(factor, from, into, count),
                Basic::F64 => scale::<f64>(factor, from, into, count),
                Basic::Complex32 => scale::<Complex<f32>>(factor, from, into, count),
                Basic::Complex64 => scale::<Complex<f64>>(factor, from, into, count),
                _ => return Err(wrong),
            }
        }
        Ok(Scaled(scaled))
    }

    /// Returns the address of the first element.
    pub fn address(&self) -> *const u64 {
        self.0.as_ptr()
    }
}

/// Multiplies elements by a factor.
///
/// # Safety
/// The factor and `count` elements at `from` may be read, and as many at `into` written.
unsafe fn scale<T: Product>(factor: *const u8, from: *const u8, into: *mut u8, count: usize) {
    let (from, into) = (from.cast::<T>(), into.cast::<T>());
    // SAFETY: guaranteed by the caller; a program may pass any address.
    let factor = unsafe { factor.cast::<T>().read_unaligned() };
    for at in 0..count {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let element = from.add(at).read_unaligned();
            into.add(at).write_unaligned(factor.product(element));
        }
    }
}
