//! The kinds of predefined elements (MPI-4.1 §6.9.2, §6.9.4). Several MPI datatypes are one kind:
//! MPI_INT, MPI_INT32_T and MPI_INTEGER are [`Basic::I32`] where they have 32 bits; `mpi` maps the
//! handles of each ABI. `reduce` has the operations.
//!
//! To add a kind: one row in `basics!` here, one row in `reduce`; the tests walk [`Basic::ALL`].

/// A group of datatypes in the sense of MPI-4.1 §6.9.2, which determines the legal ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// C integer and Fortran integer, which the standard keeps apart only for the logical ops
    Integer,
    /// MPI_AINT, MPI_OFFSET, MPI_COUNT
    MultiLanguage,
    /// floating point
    Float,
    /// complex
    Complex,
    /// C and C++ bool, Fortran LOGICAL
    Logical,
    /// MPI_BYTE
    Byte,
    /// a value and an index, for MPI_MAXLOC and MPI_MINLOC
    Pair,
    /// characters of Fortran: no numbers in the standard, but MPIs compute with them
    Character,
    /// moved and compared as bytes, no arithmetic
    Opaque,
}

macro_rules! basics {
    ($($(#[$doc:meta])* $name:ident: $kind:expr, $size:literal, $extent:literal;)*) => {
        /// A kind of predefined element.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Basic {
            $($(#[$doc])* $name,)*
        }

        impl Basic {
            /// Every kind, in the order of its number.
            pub const ALL: &[Basic] = &[$(Basic::$name),*];

            /// The group of datatypes that it belongs to.
            #[inline]
            pub const fn kind(self) -> Kind {
                const KINDS: &[Kind] = &[$($kind),*];
                KINDS[self as usize]
            }

            /// Bytes of data in an element, as MPI_Type_size says.
            #[inline]
            pub const fn size(self) -> usize {
                const SIZES: &[u8] = &[$($size),*];
                SIZES[self as usize] as usize
            }

            /// Bytes from one element to the next, as MPI_Type_get_extent says.
            #[inline]
            pub const fn extent(self) -> usize {
                const EXTENTS: &[u8] = &[$($extent),*];
                EXTENTS[self as usize] as usize
            }
        }
    };
}

basics! {
    /// signed, 8 bits
    I8: Kind::Integer, 1, 1;
    /// unsigned, 8 bits
    U8: Kind::Integer, 1, 1;
    /// signed, 16 bits
    I16: Kind::Integer, 2, 2;
    /// unsigned, 16 bits
    U16: Kind::Integer, 2, 2;
    /// signed, 32 bits
    I32: Kind::Integer, 4, 4;
    /// unsigned, 32 bits
    U32: Kind::Integer, 4, 4;
    /// signed, 64 bits
    I64: Kind::Integer, 8, 8;
    /// unsigned, 64 bits
    U64: Kind::Integer, 8, 8;
    /// MPI_AINT, MPI_OFFSET, MPI_COUNT: signed, 64 bits
    Aint64: Kind::MultiLanguage, 8, 8;
    /// MPI_INTEGER16: signed, 128 bits
    I128: Kind::Integer, 16, 16;
    /// IEEE binary32
    F32: Kind::Float, 4, 4;
    /// IEEE binary64
    F64: Kind::Float, 8, 8;
    /// C `long double`: on x86-64 ten bytes in sixteen, on AArch64 IEEE binary128
    LongDouble: Kind::Float, 16, 16;
    /// two binary32
    Complex32: Kind::Complex, 8, 8;
    /// two binary64
    Complex64: Kind::Complex, 16, 16;
    /// two `long double`
    ComplexLongDouble: Kind::Complex, 32, 32;
    /// C and C++ bool
    Bool: Kind::Logical, 1, 1;
    /// Fortran LOGICAL of one byte
    Logical1: Kind::Logical, 1, 1;
    /// Fortran LOGICAL of two bytes
    Logical2: Kind::Logical, 2, 2;
    /// Fortran LOGICAL of four bytes
    Logical4: Kind::Logical, 4, 4;
    /// Fortran LOGICAL of eight bytes
    Logical8: Kind::Logical, 8, 8;
    /// Fortran LOGICAL of sixteen bytes
    Logical16: Kind::Logical, 16, 16;
    /// MPI_BYTE
    Byte: Kind::Byte, 1, 1;
    /// MPI_CHARACTER: printable, not a number
    Char: Kind::Character, 1, 1;
    /// MPI_WCHAR
    WChar: Kind::Opaque, 4, 4;
    /// MPI_PACKED
    Packed: Kind::Opaque, 1, 1;
    /// MPI_FLOAT_INT
    FloatInt: Kind::Pair, 8, 8;
    /// MPI_DOUBLE_INT
    DoubleInt: Kind::Pair, 12, 16;
    /// MPI_LONG_INT
    LongInt: Kind::Pair, 12, 16;
    /// MPI_2INT
    TwoInt: Kind::Pair, 8, 8;
    /// MPI_SHORT_INT
    ShortInt: Kind::Pair, 6, 8;
    /// MPI_LONG_DOUBLE_INT
    LongDoubleInt: Kind::Pair, 20, 32;
    /// MPI_2REAL
    TwoReal: Kind::Pair, 8, 8;
    /// MPI_2DOUBLE_PRECISION
    TwoDouble: Kind::Pair, 16, 16;
    /// MPI_2INTEGER
    TwoInteger: Kind::Pair, 8, 8;
    /// two bytes without arithmetic here (MPI_REAL2)
    Opaque2: Kind::Opaque, 2, 2;
    /// four bytes without arithmetic here (MPI_COMPLEX4)
    Opaque4: Kind::Opaque, 4, 4;
    /// eight bytes without arithmetic here
    Opaque8: Kind::Opaque, 8, 8;
    /// sixteen bytes without arithmetic here (MPI_REAL16)
    Opaque16: Kind::Opaque, 16, 16;
    /// thirty-two bytes without arithmetic here (MPI_COMPLEX32)
    Opaque32: Kind::Opaque, 32, 32;
}

impl Basic {
    /// Returns the offset of the second member of a pair type. Both members hold data; the bytes
    /// between and after them are padding that no operation may touch.
    pub const fn second(self) -> Option<usize> {
        match self {
            Basic::FloatInt | Basic::TwoInt | Basic::ShortInt | Basic::TwoReal => Some(4),
            Basic::TwoInteger => Some(4),
            Basic::DoubleInt | Basic::LongInt | Basic::TwoDouble => Some(8),
            Basic::LongDoubleInt => Some(16),
            _ => None,
        }
    }

    /// Whether MPI_Compare_and_swap takes it (MPI-4.1 §12.3.4): C integer, Fortran integer,
    /// logical, multi-language types and byte.
    #[inline]
    pub const fn compares(self) -> bool {
        matches!(self.kind(), Kind::Integer | Kind::Logical | Kind::MultiLanguage | Kind::Byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_place_in_the_list() {
        for (number, &basic) in Basic::ALL.iter().enumerate() {
            assert_eq!(basic as usize, number);
        }
    }

    #[test]
    fn pair_types_have_their_index_behind_their_value() {
        for &basic in Basic::ALL {
            match basic.second() {
                Some(second) => {
                    assert!(second < basic.size());
                    assert!(matches!(basic.kind(), Kind::Pair | Kind::Opaque));
                    assert!(basic.size() <= basic.extent());
                }
                None => {
                    assert_eq!(basic.size(), basic.extent(), "{basic:?}");
                    assert_ne!(basic.kind(), Kind::Pair, "{basic:?}");
                }
            }
        }
    }

    #[test]
    fn extents_are_those_of_the_c_structures() {
        assert_eq!(Basic::DoubleInt.extent(), size_of::<(f64, i32)>());
        assert_eq!(Basic::ShortInt.extent(), size_of::<(i16, i32)>());
        assert_eq!(Basic::LongInt.extent(), size_of::<(i64, i32)>());
        assert_eq!(Basic::LongDoubleInt.extent(), size_of::<(u128, i32)>());
    }

    #[test]
    fn compare_and_swap_takes_integers_logicals_and_bytes() {
        assert!(Basic::U8.compares() && Basic::Aint64.compares() && Basic::Logical4.compares());
        assert!(Basic::Byte.compares());
        assert!(!Basic::F32.compares() && !Basic::Char.compares() && !Basic::TwoInt.compares());
    }
}
