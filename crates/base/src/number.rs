//! Conversions between integers, by name. Those of [`Number`] lose nothing on the targets of this
//! library, whose addresses have 64 bits; for a change of the sign alone there are `cast_signed`
//! and `cast_unsigned` of the language.

const _: () = assert!(size_of::<usize>() == size_of::<u64>());

/// An integer as another type of integer.
pub trait Number: Copy {
    /// Returns it as a length, an index or an address of this process.
    fn to_usize(self) -> usize;

    /// Returns it as 64 bits.
    fn to_u64(self) -> u64;

    /// Returns its low 32 bits.
    fn low_u32(self) -> u32;

    /// Returns its low 16 bits.
    #[inline(always)]
    fn low_u16(self) -> u16 {
        let [low, high, ..] = self.low_u32().to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    /// Returns its low 8 bits.
    #[inline(always)]
    fn low_u8(self) -> u8 {
        self.low_u32().to_le_bytes()[0]
    }

    /// Returns a count or an index of less than 2^32.
    #[inline(always)]
    fn to_u32(self) -> u32 {
        debug_assert!(u32::try_from(self.to_u64()).is_ok());
        self.low_u32()
    }

    /// Returns a count or an index of less than 2^31.
    #[inline(always)]
    fn to_i32(self) -> i32 {
        debug_assert!(i32::try_from(self.to_u64()).is_ok());
        self.low_u32().cast_signed()
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(
            #[allow(clippy::as_conversions, clippy::cast_possible_truncation)] // see above
            impl Number for $number {
                #[inline(always)]
                fn to_usize(self) -> usize {
                    self as usize
                }

                #[inline(always)]
                fn to_u64(self) -> u64 {
                    self as u64
                }

                #[inline(always)]
                fn low_u32(self) -> u32 {
                    self as u32
                }
            }
        )*
    };
}

numbers! { u8 u16 u32 u64 usize }

/// A signed integer as an offset in this process.
pub trait Offset: Copy {
    /// Returns it as an offset of pointers.
    fn to_isize(self) -> isize;
}

macro_rules! offsets {
    ($($offset:ty)*) => {
        $(
            #[allow(clippy::as_conversions, clippy::cast_possible_truncation)] // as above
            impl Offset for $offset {
                #[inline(always)]
                fn to_isize(self) -> isize {
                    self as isize
                }
            }
        )*
    };
}

offsets! { i32 i64 }
