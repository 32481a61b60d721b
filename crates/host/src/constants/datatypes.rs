//! The predefined datatypes of the three ABIs: name, kind of elements, and handles.
//!
//! The sizes of Fortran's default types are those of the usual compiler options (INTEGER, REAL and
//! LOGICAL 4 bytes); the lookup of a handle compares with PMPI_Type_size. An opaque one has
//! a size but no arithmetic here. Names that are only another spelling of the same handle
//! (MPI_C_COMPLEX, MPI_LONG_LONG_INT, MPI_CXX_COMPLEX) have no row, nor have extensions: the number
//! of MPIX_BFLOAT16 is not the same in MPICH and in Intel MPI.

use core::ffi::CStr;

use crate::handle::{Abi, Handle};
use fompi_datatype::basic::Basic;

/// One predefined datatype.
#[derive(Clone, Copy, Debug)]
pub struct PredefinedType {
    /// its name in C
    pub name: &'static str,
    /// the kind of its elements
    pub basic: Basic,
    /// its handle in the MPICH ABI; MPICH 4 lacks some of them, and uses their numbers for nothing
    /// else
    pub mpich: usize,
    /// its data symbol in Open MPI, which a version may lack
    pub openmpi: Option<&'static CStr>,
    /// its handle in the MPI-5 ABI; 0 if it has none
    pub standard: usize,
}

impl PredefinedType {
    /// Returns the handle in an ABI, 0 if it has none; `resolve` finds Open MPI's objects.
    pub fn handle(&self, abi: Abi, resolve: impl Fn(&'static CStr) -> usize) -> Handle {
        match abi {
            Abi::Mpich => self.mpich,
            Abi::OpenMpi => self.openmpi.map_or(0, resolve),
            Abi::Standard => self.standard,
        }
    }
}

/// Every predefined datatype of MPI-4.1 §3.2.2 and §6.9.4, with the sized ones that an
/// implementation has.
pub const PREDEFINED: [PredefinedType; ROWS.len()] = {
    let mut all = [named(ROWS[0]); ROWS.len()];
    let mut i = 1;
    while i < ROWS.len() {
        all[i] = named(ROWS[i]);
        i += 1;
    }
    all
};

/// A row as it is written below: name, basic type, MPICH, Open MPI, MPI-5.
type Row = (&'static str, Basic, usize, Option<&'static CStr>, usize);

/// A row with its columns named.
const fn named((name, basic, mpich, openmpi, standard): Row) -> PredefinedType {
    PredefinedType { name, basic, mpich, openmpi, standard }
}

/// C's `char`, with which MPIs compute although it is no number in the standard: signed on x86-64,
/// unsigned on AArch64.
const CHAR: Basic = if core::ffi::c_char::MIN == 0 { Basic::U8 } else { Basic::I8 };

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("MPI_CHAR", CHAR, 0x4c000101, Some(c"ompi_mpi_char"), 0x243),
    ("MPI_SIGNED_CHAR", Basic::I8, 0x4c000118, Some(c"ompi_mpi_signed_char"), 0x244),
    ("MPI_UNSIGNED_CHAR", Basic::U8, 0x4c000102, Some(c"ompi_mpi_unsigned_char"), 0x245),
    ("MPI_BYTE", Basic::Byte, 0x4c00010d, Some(c"ompi_mpi_byte"), 0x247),
    ("MPI_PACKED", Basic::Packed, 0x4c00010f, Some(c"ompi_mpi_packed"), 0x207),
    ("MPI_WCHAR", Basic::WChar, 0x4c00040e, Some(c"ompi_mpi_wchar"), 0x23c),
    ("MPI_SHORT", Basic::I16, 0x4c000203, Some(c"ompi_mpi_short"), 0x208),
    ("MPI_UNSIGNED_SHORT", Basic::U16, 0x4c000204, Some(c"ompi_mpi_unsigned_short"), 0x20c),
    ("MPI_INT", Basic::I32, 0x4c000405, Some(c"ompi_mpi_int"), 0x209),
    ("MPI_UNSIGNED", Basic::U32, 0x4c000406, Some(c"ompi_mpi_unsigned"), 0x20d),
    ("MPI_LONG", Basic::I64, 0x4c000807, Some(c"ompi_mpi_long"), 0x20a),
    ("MPI_UNSIGNED_LONG", Basic::U64, 0x4c000808, Some(c"ompi_mpi_unsigned_long"), 0x20e),
    ("MPI_LONG_LONG", Basic::I64, 0x4c000809, Some(c"ompi_mpi_long_long_int"), 0x20b),
    ("MPI_UNSIGNED_LONG_LONG", Basic::U64, 0x4c000819, Some(c"ompi_mpi_unsigned_long_long"), 0x20f),
    ("MPI_FLOAT", Basic::F32, 0x4c00040a, Some(c"ompi_mpi_float"), 0x210),
    ("MPI_DOUBLE", Basic::F64, 0x4c00080b, Some(c"ompi_mpi_double"), 0x214),
    ("MPI_LONG_DOUBLE", Basic::LongDouble, 0x4c00100c, Some(c"ompi_mpi_long_double"), 0x220),
    ("MPI_INT8_T", Basic::I8, 0x4c000137, Some(c"ompi_mpi_int8_t"), 0x240),
    ("MPI_INT16_T", Basic::I16, 0x4c000238, Some(c"ompi_mpi_int16_t"), 0x248),
    ("MPI_INT32_T", Basic::I32, 0x4c000439, Some(c"ompi_mpi_int32_t"), 0x250),
    ("MPI_INT64_T", Basic::I64, 0x4c00083a, Some(c"ompi_mpi_int64_t"), 0x258),
    ("MPI_UINT8_T", Basic::U8, 0x4c00013b, Some(c"ompi_mpi_uint8_t"), 0x241),
    ("MPI_UINT16_T", Basic::U16, 0x4c00023c, Some(c"ompi_mpi_uint16_t"), 0x249),
    ("MPI_UINT32_T", Basic::U32, 0x4c00043d, Some(c"ompi_mpi_uint32_t"), 0x251),
    ("MPI_UINT64_T", Basic::U64, 0x4c00083e, Some(c"ompi_mpi_uint64_t"), 0x259),
    ("MPI_C_BOOL", Basic::Bool, 0x4c00013f, Some(c"ompi_mpi_c_bool"), 0x238),
    ("MPI_C_FLOAT_COMPLEX", Basic::Complex32, 0x4c000840, Some(c"ompi_mpi_c_float_complex"), 0x212),
    (
        "MPI_C_DOUBLE_COMPLEX", Basic::Complex64, 0x4c001041,
        Some(c"ompi_mpi_c_double_complex"), 0x216,
    ),
    (
        "MPI_C_LONG_DOUBLE_COMPLEX", Basic::ComplexLongDouble, 0x4c002042,
        Some(c"ompi_mpi_c_long_double_complex"), 0x224,
    ),
    ("MPI_CXX_BOOL", Basic::Bool, 0x4c000133, Some(c"ompi_mpi_cxx_bool"), 0x239),
    ("MPI_CXX_FLOAT_COMPLEX", Basic::Complex32, 0x4c000834, Some(c"ompi_mpi_cxx_cplex"), 0x213),
    ("MPI_CXX_DOUBLE_COMPLEX", Basic::Complex64, 0x4c001035, Some(c"ompi_mpi_cxx_dblcplex"), 0x217),
    (
        "MPI_CXX_LONG_DOUBLE_COMPLEX", Basic::ComplexLongDouble, 0x4c002036,
        Some(c"ompi_mpi_cxx_ldblcplex"), 0x225,
    ),
    ("MPI_AINT", Basic::Aint64, 0x4c000843, Some(c"ompi_mpi_aint"), 0x201),
    ("MPI_OFFSET", Basic::Aint64, 0x4c000844, Some(c"ompi_mpi_offset"), 0x203),
    ("MPI_COUNT", Basic::Aint64, 0x4c000845, Some(c"ompi_mpi_count"), 0x202),
    ("MPI_FLOAT_INT", Basic::FloatInt, 0x8c000000, Some(c"ompi_mpi_float_int"), 0x228),
    ("MPI_DOUBLE_INT", Basic::DoubleInt, 0x8c000001, Some(c"ompi_mpi_double_int"), 0x229),
    ("MPI_LONG_INT", Basic::LongInt, 0x8c000002, Some(c"ompi_mpi_long_int"), 0x22a),
    ("MPI_2INT", Basic::TwoInt, 0x4c000816, Some(c"ompi_mpi_2int"), 0x22b),
    ("MPI_SHORT_INT", Basic::ShortInt, 0x8c000003, Some(c"ompi_mpi_short_int"), 0x22c),
    ("MPI_LONG_DOUBLE_INT", Basic::LongDoubleInt, 0x8c000004, Some(c"ompi_mpi_longdbl_int"), 0x22d),
    ("MPI_CHARACTER", Basic::Char, 0x4c00011a, Some(c"ompi_mpi_character"), 0x21e),
    ("MPI_INTEGER", Basic::I32, 0x4c00041b, Some(c"ompi_mpi_integer"), 0x219),
    ("MPI_REAL", Basic::F32, 0x4c00041c, Some(c"ompi_mpi_real"), 0x21a),
    ("MPI_DOUBLE_PRECISION", Basic::F64, 0x4c00081f, Some(c"ompi_mpi_dblprec"), 0x21c),
    ("MPI_COMPLEX", Basic::Complex32, 0x4c00081e, Some(c"ompi_mpi_cplex"), 0x21b),
    ("MPI_DOUBLE_COMPLEX", Basic::Complex64, 0x4c001022, Some(c"ompi_mpi_dblcplex"), 0x21d),
    ("MPI_LOGICAL", Basic::Logical4, 0x4c00041d, Some(c"ompi_mpi_logical"), 0x218),
    ("MPI_2INTEGER", Basic::TwoInteger, 0x4c000820, Some(c"ompi_mpi_2integer"), 0x232),
    ("MPI_2REAL", Basic::TwoReal, 0x4c000821, Some(c"ompi_mpi_2real"), 0x230),
    ("MPI_2DOUBLE_PRECISION", Basic::TwoDouble, 0x4c001023, Some(c"ompi_mpi_2dblprec"), 0x231),
    ("MPI_INTEGER1", Basic::I8, 0x4c00012d, Some(c"ompi_mpi_integer1"), 0x2c1),
    ("MPI_INTEGER2", Basic::I16, 0x4c00022f, Some(c"ompi_mpi_integer2"), 0x2c9),
    ("MPI_INTEGER4", Basic::I32, 0x4c000430, Some(c"ompi_mpi_integer4"), 0x2d1),
    ("MPI_INTEGER8", Basic::I64, 0x4c000831, Some(c"ompi_mpi_integer8"), 0x2d9),
    ("MPI_INTEGER16", Basic::I128, 0x4c001032, Some(c"ompi_mpi_integer16"), 0x2e1),
    ("MPI_REAL2", Basic::Opaque2, 0x4c000226, Some(c"ompi_mpi_real2"), 0x2ca),
    ("MPI_REAL4", Basic::F32, 0x4c000427, Some(c"ompi_mpi_real4"), 0x2d2),
    ("MPI_REAL8", Basic::F64, 0x4c000829, Some(c"ompi_mpi_real8"), 0x2da),
    ("MPI_REAL16", Basic::Opaque16, 0x4c00102b, Some(c"ompi_mpi_real16"), 0x2e2),
    ("MPI_COMPLEX4", Basic::Opaque4, 0x4c00042e, Some(c"ompi_mpi_complex4"), 0x2d3),
    ("MPI_COMPLEX8", Basic::Complex32, 0x4c000828, Some(c"ompi_mpi_complex8"), 0x2db),
    ("MPI_COMPLEX16", Basic::Complex64, 0x4c00102a, Some(c"ompi_mpi_complex16"), 0x2e3),
    ("MPI_COMPLEX32", Basic::Opaque32, 0x4c00202c, Some(c"ompi_mpi_complex32"), 0x2eb),
    ("MPI_LOGICAL1", Basic::Logical1, 0x4c000147, Some(c"ompi_mpi_logical1"), 0x2c0),
    ("MPI_LOGICAL2", Basic::Logical2, 0x4c000248, Some(c"ompi_mpi_logical2"), 0x2c8),
    ("MPI_LOGICAL4", Basic::Logical4, 0x4c000449, Some(c"ompi_mpi_logical4"), 0x2d0),
    ("MPI_LOGICAL8", Basic::Logical8, 0x4c00084a, Some(c"ompi_mpi_logical8"), 0x2d8),
    ("MPI_LOGICAL16", Basic::Logical16, 0x4c00104b, None, 0x2e0),
    ("MPI_2COMPLEX", Basic::Opaque16, 0x4c001024, Some(c"ompi_mpi_2cplex"), 0),
    ("MPI_2DOUBLE_COMPLEX", Basic::Opaque32, 0x4c002025, Some(c"ompi_mpi_2dblcplex"), 0),
];
