//! The numbers of mpi.h in each of the three ABIs: what a C program hands to us, as plain integers.
//!
//! There are only three: MPICH's (MPICH, Intel MPI, MVAPICH, Cray), Open MPI's, and that of MPI-5.
//! A handle is a `usize`; where the ABI's handle is an `int`, its low 32 bits. The tables are
//! written by hand and `scripts/dev/check-abi` proves every row against each mpi.h that is
//! installed. Which ABI is loaded is found out elsewhere; nothing here calls MPI.

mod datatypes;
mod mpich;
mod openmpi;
#[cfg(test)]
mod proof;
mod standard;

pub use datatypes::PREDEFINED;
pub use mpich::MPICH;
pub use openmpi::{INTEGERS as OPENMPI_INTEGERS, openmpi};
pub use standard::{STANDARD, STANDARD_INTEL};

use crate::error::Class;

/// Declares [`Constants`] and, for the proof, the list of its values with their names in C.
macro_rules! constants {
    (
        handles { $($handle:ident $handle_name:literal,)* }
        integers { $($integer:ident $integer_name:literal,)* }
    ) => {
        /// The constants of one ABI. A combiner that the ABI does not have is -1.
        #[derive(Clone, Copy, Debug)]
        pub struct Constants {
            $(#[doc = $handle_name] pub $handle: usize,)*
            /// MPI_ERRORS_ABORT, which Open MPI has only since version 5.
            pub errors_abort: Option<usize>,
            $(#[doc = $integer_name] pub $integer: i32,)*
        }

        #[cfg(test)]
        impl Constants {
            /// Name in C and value of each handle; 0 where there is none.
            fn handles(&self) -> Vec<(&'static str, usize)> {
                let abort = self.errors_abort.unwrap_or(0);
                vec![$(($handle_name, self.$handle),)* ("MPI_ERRORS_ABORT", abort)]
            }

            /// Name in C and value of each integer.
            fn integers(&self) -> Vec<(&'static str, i32)> {
                vec![$(($integer_name, self.$integer),)*]
            }
        }
    };
}

constants! {
    handles {
        win_null "MPI_WIN_NULL",
        datatype_null "MPI_DATATYPE_NULL",
        info_null "MPI_INFO_NULL",
        errhandler_null "MPI_ERRHANDLER_NULL",
        group_null "MPI_GROUP_NULL",
        comm_null "MPI_COMM_NULL",
        comm_world "MPI_COMM_WORLD",
        comm_self "MPI_COMM_SELF",
        errors_are_fatal "MPI_ERRORS_ARE_FATAL",
        errors_return "MPI_ERRORS_RETURN",
        max "MPI_MAX",
        min "MPI_MIN",
        sum "MPI_SUM",
        prod "MPI_PROD",
        land "MPI_LAND",
        band "MPI_BAND",
        lor "MPI_LOR",
        bor "MPI_BOR",
        lxor "MPI_LXOR",
        bxor "MPI_BXOR",
        maxloc "MPI_MAXLOC",
        minloc "MPI_MINLOC",
        replace "MPI_REPLACE",
        no_op "MPI_NO_OP",
    }
    integers {
        handle_bytes "sizeof(MPI_Win)",
        status_bytes "sizeof(MPI_Status)",
        proc_null "MPI_PROC_NULL",
        any_source "MPI_ANY_SOURCE",
        undefined "MPI_UNDEFINED",
        keyval_invalid "MPI_KEYVAL_INVALID",
        lock_exclusive "MPI_LOCK_EXCLUSIVE",
        lock_shared "MPI_LOCK_SHARED",
        mode_nocheck "MPI_MODE_NOCHECK",
        mode_nostore "MPI_MODE_NOSTORE",
        mode_noput "MPI_MODE_NOPUT",
        mode_noprecede "MPI_MODE_NOPRECEDE",
        mode_nosucceed "MPI_MODE_NOSUCCEED",
        win_base "MPI_WIN_BASE",
        win_size "MPI_WIN_SIZE",
        win_disp_unit "MPI_WIN_DISP_UNIT",
        win_create_flavor "MPI_WIN_CREATE_FLAVOR",
        win_model "MPI_WIN_MODEL",
        flavor_create "MPI_WIN_FLAVOR_CREATE",
        flavor_allocate "MPI_WIN_FLAVOR_ALLOCATE",
        flavor_dynamic "MPI_WIN_FLAVOR_DYNAMIC",
        flavor_shared "MPI_WIN_FLAVOR_SHARED",
        unified "MPI_WIN_UNIFIED",
        thread_multiple "MPI_THREAD_MULTIPLE",
        max_object_name "MPI_MAX_OBJECT_NAME",
        max_info_val "MPI_MAX_INFO_VAL",
        combiner_named "MPI_COMBINER_NAMED",
        combiner_dup "MPI_COMBINER_DUP",
        combiner_contiguous "MPI_COMBINER_CONTIGUOUS",
        combiner_vector "MPI_COMBINER_VECTOR",
        combiner_hvector_integer "MPI_COMBINER_HVECTOR_INTEGER",
        combiner_hvector "MPI_COMBINER_HVECTOR",
        combiner_indexed "MPI_COMBINER_INDEXED",
        combiner_hindexed_integer "MPI_COMBINER_HINDEXED_INTEGER",
        combiner_hindexed "MPI_COMBINER_HINDEXED",
        combiner_indexed_block "MPI_COMBINER_INDEXED_BLOCK",
        combiner_struct_integer "MPI_COMBINER_STRUCT_INTEGER",
        combiner_struct "MPI_COMBINER_STRUCT",
        combiner_subarray "MPI_COMBINER_SUBARRAY",
        combiner_darray "MPI_COMBINER_DARRAY",
        combiner_f90_real "MPI_COMBINER_F90_REAL",
        combiner_f90_complex "MPI_COMBINER_F90_COMPLEX",
        combiner_f90_integer "MPI_COMBINER_F90_INTEGER",
        combiner_resized "MPI_COMBINER_RESIZED",
        combiner_hindexed_block "MPI_COMBINER_HINDEXED_BLOCK",
        combiner_value_index "MPI_COMBINER_VALUE_INDEX",
        err_buffer "MPI_ERR_BUFFER",
        err_count "MPI_ERR_COUNT",
        err_type "MPI_ERR_TYPE",
        err_comm "MPI_ERR_COMM",
        err_rank "MPI_ERR_RANK",
        err_request "MPI_ERR_REQUEST",
        err_group "MPI_ERR_GROUP",
        err_op "MPI_ERR_OP",
        err_arg "MPI_ERR_ARG",
        err_truncate "MPI_ERR_TRUNCATE",
        err_other "MPI_ERR_OTHER",
        err_intern "MPI_ERR_INTERN",
        err_keyval "MPI_ERR_KEYVAL",
        err_no_mem "MPI_ERR_NO_MEM",
        err_info "MPI_ERR_INFO",
        err_size "MPI_ERR_SIZE",
        err_disp "MPI_ERR_DISP",
        err_locktype "MPI_ERR_LOCKTYPE",
        err_assert "MPI_ERR_ASSERT",
        err_win "MPI_ERR_WIN",
        err_rma_conflict "MPI_ERR_RMA_CONFLICT",
        err_rma_sync "MPI_ERR_RMA_SYNC",
        err_rma_range "MPI_ERR_RMA_RANGE",
        err_rma_attach "MPI_ERR_RMA_ATTACH",
        err_rma_shared "MPI_ERR_RMA_SHARED",
        err_rma_flavor "MPI_ERR_RMA_FLAVOR",
        err_unsupported_operation "MPI_ERR_UNSUPPORTED_OPERATION",
        err_base "MPI_ERR_BASE",
    }
}

impl Constants {
    /// The number of an error class in this ABI.
    pub const fn class(&self, class: Class) -> i32 {
        match class {
            Class::Buffer => self.err_buffer,
            Class::Count => self.err_count,
            Class::Type => self.err_type,
            Class::Comm => self.err_comm,
            Class::Rank => self.err_rank,
            Class::Request => self.err_request,
            Class::Group => self.err_group,
            Class::Op => self.err_op,
            Class::Arg => self.err_arg,
            Class::Truncate => self.err_truncate,
            Class::Other => self.err_other,
            Class::Intern => self.err_intern,
            Class::Keyval => self.err_keyval,
            Class::NoMem => self.err_no_mem,
            Class::Info => self.err_info,
            Class::Size => self.err_size,
            Class::Disp => self.err_disp,
            Class::LockType => self.err_locktype,
            Class::Assert => self.err_assert,
            Class::Win => self.err_win,
            Class::RmaConflict => self.err_rma_conflict,
            Class::RmaSync => self.err_rma_sync,
            Class::RmaRange => self.err_rma_range,
            Class::RmaAttach => self.err_rma_attach,
            Class::RmaShared => self.err_rma_shared,
            Class::RmaFlavor => self.err_rma_flavor,
            Class::Unsupported => self.err_unsupported_operation,
            Class::Base => self.err_base,
        }
    }
}
