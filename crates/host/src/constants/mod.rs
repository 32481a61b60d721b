//! The numbers of mpi.h in each of the three ABIs, which a C program passes to the library as plain
//! integers. //!
//!
//! There are only three: MPICH's (MPICH since 3.1, Intel MPI, MVAPICH, Cray MPICH), Open MPI's, and
//! that of MPI-5 (MPI-5.0 chapter 20, libmpi_abi.so). Each constant has one row here, each
//! predefined datatype one in `datatypes`, each operation one in `datatype::reduce`. The rows are
//! written by hand, and `scripts/dev/check-abi` proves them against each mpi.h that is installed.
//! Another module finds out which ABI is loaded; nothing here calls MPI.
//!
//! A handle is a `usize`. In the MPICH ABI it is an `int`, the same as in Fortran: its low 32 bits.
//! In Open MPI it is the address of a data symbol, which an executable may have copied into itself
//! (a COPY relocation, even in a PIE): `resolve` has to ask for the symbol as the program sees it
//! (RTLD_DEFAULT), and the library's own handle only when that knows nothing.
//!
//! Not here: the predefined window keyvals of Fortran in the MPICH ABI, which are those of C plus
//! one, and mean that the attribute is handed over by value.

mod datatypes;
#[cfg(test)]
mod proof;

pub use datatypes::PREDEFINED;

use crate::handle::{Abi, Handle};
use core::ffi::CStr;
use fompi_base::error::Class;
use fompi_datatype::reduce::PredefinedOp;

/// The ABIs, in the order of the columns.
const MPICH_COLUMN: usize = 0;
const OPENMPI_COLUMN: usize = 1;
const STANDARD_COLUMN: usize = 2;

/// Declares [`Constants`] and its values in each ABI from rows of MPICH, Open MPI and MPI-5.
macro_rules! constants {
    (
        handles {
            $($handle:ident $handle_name:literal
                $mpich_handle:literal, $symbol:literal, $standard_handle:literal;)*
        }
        integers {
            $($integer:ident $name:literal $mpich:literal, $openmpi:literal, $standard:literal;)*
        }
        classes {
            $($class:ident
                $mpich_class:literal, $openmpi_class:literal, $standard_class:literal;)*
        }
    ) => {
        /// The constants of one ABI.
        #[derive(Clone, Copy, Debug)]
        pub struct Constants {
            $(#[doc = concat!("`", $handle_name, "`")] pub $handle: usize,)*
            $(#[doc = concat!("`", $name, "`")] pub $integer: i32,)*
            /// the column of the error classes
            column: usize,
        }

        /// The MPICH ABI.
        pub const MPICH: Constants = Constants {
            $($handle: $mpich_handle,)*
            $($integer: $mpich,)*
            column: MPICH_COLUMN,
        };

        /// The constants that do not depend on addresses in the Open MPI ABI; the handles are 0.
        pub const OPENMPI_INTEGERS: Constants = Constants {
            $($handle: 0,)*
            $($integer: $openmpi,)*
            column: OPENMPI_COLUMN,
        };

        /// The Open MPI ABI. `resolve` gives the address of a data symbol, 0 if there is none.
        pub fn openmpi(resolve: impl Fn(&'static CStr) -> usize) -> Constants {
            Constants { $($handle: resolve($symbol),)* ..OPENMPI_INTEGERS }
        }

        /// The MPI-5 ABI.
        pub const STANDARD: Constants = Constants {
            $($handle: $standard_handle,)*
            $($integer: $standard,)*
            column: STANDARD_COLUMN,
        };

        /// The numbers of an error class in the three ABIs.
        const fn numbers(class: Class) -> [i32; 3] {
            match class {
                $(Class::$class => [$mpich_class, $openmpi_class, $standard_class],)*
            }
        }

        #[cfg(test)]
        impl Constants {
            /// Name in C, value, and data symbol of each handle.
            fn handles(&self) -> Vec<(&'static str, usize, &'static CStr)> {
                vec![$(($handle_name, self.$handle, $symbol),)*]
            }

            /// Name in C and value of each integer.
            fn integers(&self) -> Vec<(&'static str, i32)> {
                vec![$(($name, self.$integer),)*]
            }
        }
    };
}

#[rustfmt::skip]
constants! {
    handles {
        win_null "MPI_WIN_NULL" 0x20000000, c"ompi_mpi_win_null", 0x110;
        datatype_null "MPI_DATATYPE_NULL" 0x0c000000, c"ompi_mpi_datatype_null", 0x200;
        info_null "MPI_INFO_NULL" 0x1c000000, c"ompi_mpi_info_null", 0x130;
        errhandler_null "MPI_ERRHANDLER_NULL" 0x14000000, c"ompi_mpi_errhandler_null", 0x140;
        group_null "MPI_GROUP_NULL" 0x08000000, c"ompi_mpi_group_null", 0x108;
        comm_null "MPI_COMM_NULL" 0x04000000, c"ompi_mpi_comm_null", 0x100;
        comm_world "MPI_COMM_WORLD" 0x44000000, c"ompi_mpi_comm_world", 0x101;
        comm_self "MPI_COMM_SELF" 0x44000001, c"ompi_mpi_comm_self", 0x102;
        errors_are_fatal "MPI_ERRORS_ARE_FATAL" 0x54000000, c"ompi_mpi_errors_are_fatal", 0x141;
        errors_return "MPI_ERRORS_RETURN" 0x54000001, c"ompi_mpi_errors_return", 0x143;
        errors_abort "MPI_ERRORS_ABORT" 0x54000003, c"ompi_mpi_errors_abort", 0x142;
    }
    // A combiner that an ABI does not have is -1.
    integers {
        handle_bytes "sizeof(MPI_Win)" 4, 8, 8;
        status_bytes "sizeof(MPI_Status)" 20, 24, 32;
        proc_null "MPI_PROC_NULL" -1, -2, -3;
        any_source "MPI_ANY_SOURCE" -2, -1, -1;
        undefined "MPI_UNDEFINED" -32766, -32766, -32766;
        keyval_invalid "MPI_KEYVAL_INVALID" 0x24000000, -1, 0;
        lock_exclusive "MPI_LOCK_EXCLUSIVE" 234, 1, 301;
        lock_shared "MPI_LOCK_SHARED" 235, 2, 302;
        mode_nocheck "MPI_MODE_NOCHECK" 1024, 1, 1024;
        mode_nostore "MPI_MODE_NOSTORE" 2048, 8, 8192;
        mode_noput "MPI_MODE_NOPUT" 4096, 4, 4096;
        mode_noprecede "MPI_MODE_NOPRECEDE" 8192, 2, 2048;
        mode_nosucceed "MPI_MODE_NOSUCCEED" 16384, 16, 16384;
        win_base "MPI_WIN_BASE" 0x66000001, 7, 601;
        win_size "MPI_WIN_SIZE" 0x66000003, 8, 603;
        win_disp_unit "MPI_WIN_DISP_UNIT" 0x66000005, 9, 602;
        win_create_flavor "MPI_WIN_CREATE_FLAVOR" 0x66000007, 10, 604;
        win_model "MPI_WIN_MODEL" 0x66000009, 11, 605;
        flavor_create "MPI_WIN_FLAVOR_CREATE" 1, 1, 311;
        flavor_allocate "MPI_WIN_FLAVOR_ALLOCATE" 2, 2, 312;
        flavor_dynamic "MPI_WIN_FLAVOR_DYNAMIC" 3, 3, 313;
        flavor_shared "MPI_WIN_FLAVOR_SHARED" 4, 4, 314;
        unified "MPI_WIN_UNIFIED" 2, 0, 321;
        thread_multiple "MPI_THREAD_MULTIPLE" 3, 3, 4096;
        max_object_name "MPI_MAX_OBJECT_NAME" 128, 64, 128;
        max_info_val "MPI_MAX_INFO_VAL" 1024, 256, 1024;
        combiner_named "MPI_COMBINER_NAMED" 1, 0, 101;
        combiner_dup "MPI_COMBINER_DUP" 2, 1, 102;
        combiner_contiguous "MPI_COMBINER_CONTIGUOUS" 3, 2, 103;
        combiner_vector "MPI_COMBINER_VECTOR" 4, 3, 104;
        combiner_hvector_integer "MPI_COMBINER_HVECTOR_INTEGER" 5, 4, -1;
        combiner_hvector "MPI_COMBINER_HVECTOR" 6, 5, 105;
        combiner_indexed "MPI_COMBINER_INDEXED" 7, 6, 106;
        combiner_hindexed_integer "MPI_COMBINER_HINDEXED_INTEGER" 8, 7, -1;
        combiner_hindexed "MPI_COMBINER_HINDEXED" 9, 8, 107;
        combiner_indexed_block "MPI_COMBINER_INDEXED_BLOCK" 10, 9, 108;
        combiner_struct_integer "MPI_COMBINER_STRUCT_INTEGER" 11, 10, -1;
        combiner_struct "MPI_COMBINER_STRUCT" 12, 11, 110;
        combiner_subarray "MPI_COMBINER_SUBARRAY" 13, 12, 111;
        combiner_darray "MPI_COMBINER_DARRAY" 14, 13, 112;
        combiner_f90_real "MPI_COMBINER_F90_REAL" 15, 14, 113;
        combiner_f90_complex "MPI_COMBINER_F90_COMPLEX" 16, 15, 114;
        combiner_f90_integer "MPI_COMBINER_F90_INTEGER" 17, 16, 115;
        combiner_resized "MPI_COMBINER_RESIZED" 18, 17, 116;
        combiner_hindexed_block "MPI_COMBINER_HINDEXED_BLOCK" 19, 18, 109;
        combiner_value_index "MPI_COMBINER_VALUE_INDEX" 20, -1, 117;
    }
    classes {
        Buffer 1, 1, 1;
        Count 2, 2, 2;
        Type 3, 3, 3;
        Comm 5, 5, 5;
        Rank 6, 6, 6;
        Request 19, 7, 7;
        Group 8, 9, 9;
        Op 9, 10, 10;
        Arg 12, 13, 13;
        Truncate 14, 15, 15;
        Other 15, 16, 16;
        Intern 16, 17, 17;
        Keyval 48, 36, 36;
        NoMem 34, 39, 39;
        Info 28, 34, 34;
        Size 51, 49, 52;
        Disp 52, 26, 26;
        LockType 47, 37, 37;
        Assert 53, 22, 22;
        Win 45, 53, 56;
        RmaConflict 49, 46, 47;
        RmaSync 50, 47, 50;
        RmaRange 55, 68, 48;
        RmaAttach 56, 69, 46;
        RmaShared 57, 71, 49;
        RmaFlavor 58, 70, 57;
        Unsupported 44, 52, 55;
        Base 46, 24, 24;
    }
}

/// The MPI-5 ABI as Intel MPI has it: its libmpi_abi.so exchanges two error handlers. The values
/// are those of that library, since handles are passed on to it.
pub const STANDARD_INTEL: Constants =
    Constants { errors_return: 0x142, errors_abort: 0x143, ..STANDARD };

/// Returns the handle of a predefined operation in an ABI; `resolve` finds Open MPI's objects.
pub fn op_handle(
    known: &PredefinedOp,
    abi: Abi,
    resolve: impl Fn(&'static CStr) -> usize,
) -> Handle {
    match abi {
        Abi::Mpich => known.mpich,
        Abi::OpenMpi => resolve(known.openmpi),
        Abi::Standard => known.standard,
    }
}

impl Constants {
    /// Returns the constants of an ABI; `resolve` finds Open MPI's objects.
    pub fn of(abi: Abi, is_intel: bool, resolve: impl Fn(&'static CStr) -> usize) -> Constants {
        match abi {
            Abi::Standard if is_intel => STANDARD_INTEL,
            Abi::Mpich => MPICH,
            Abi::Standard => STANDARD,
            Abi::OpenMpi => openmpi(resolve),
        }
    }

    /// The number of an error class in this ABI.
    pub const fn class(&self, class: Class) -> i32 {
        numbers(class)[self.column]
    }
}
