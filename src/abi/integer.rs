//! Conversion of window handles to integers, and arithmetic of addresses (MPI-4.1 §19.3.4, §5.1.5).
//! libfompi's handles are the same integer in C and Fortran and in every ABI.

use super::{MPI_Aint, MPI_Fint, MPI_Win};
use crate::mpi::Host;
use crate::number::Number;
use crate::window::registry::{self, Found};
use core::ffi::{CStr, c_int};

/// Whether a handle has libfompi's encoding, whether or not the window exists.
fn is_ours(handle: usize) -> bool {
    !matches!(registry::find(handle), Found::Foreign)
}

/// Returns the first of `names` that the host MPI has.
///
/// # Safety
/// `F` is the type of the function pointer that each name stands for.
unsafe fn first<F>(names: &[&CStr]) -> Option<F> {
    // SAFETY: the caller guarantees the type.
    names.iter().find_map(|name| unsafe { Host::get().extra(name) })
}

/// Returns a handle as an integer. A handle that is not libfompi's is converted by the first of
/// `others` that the host MPI has.
fn to_integer(win: MPI_Win, others: &[&CStr]) -> c_int {
    let handle = Host::get().handle(win);
    if is_ours(handle) {
        return handle.low_u32().cast_signed();
    }
    // SAFETY: all callers pass names of functions of this type.
    let other: Option<unsafe extern "C-unwind" fn(usize) -> c_int> = unsafe { first(others) };
    // SAFETY: a handle of the host MPI.
    other.map_or(handle.low_u32().cast_signed(), |call| unsafe { call(handle) })
}

/// Returns an integer as a handle. An integer that is not libfompi's is converted by the first of
/// `others` that the host MPI has.
fn from_integer(number: c_int, others: &[&CStr]) -> MPI_Win {
    if is_ours(number.cast_unsigned().to_usize()) {
        return number.cast_unsigned().to_usize();
    }
    // SAFETY: all callers pass names of functions of this type.
    let other: Option<unsafe extern "C-unwind" fn(c_int) -> usize> = unsafe { first(others) };
    // SAFETY: an integer that the host MPI assigned.
    other.map_or(number.cast_unsigned().to_usize(), |call| {
        // SAFETY: the host MPI assigned the integer.
        Host::get().handle(unsafe { call(number) })
    })
}

/// Returns the window handle of an integer of Fortran.
pub(super) fn window_from_fortran(number: MPI_Fint) -> MPI_Win {
    from_integer(number, F2C)
}

/// The functions that convert handles, the preferred one first. MPICH has none: its handles are
/// integers.
const C2F: &[&CStr] = &[c"PMPI_Win_c2f"];
const F2C: &[&CStr] = &[c"PMPI_Win_f2c"];
const TOINT: &[&CStr] = &[c"PMPI_Win_toint", c"PMPI_Win_c2f"];
const FROMINT: &[&CStr] = &[c"PMPI_Win_fromint", c"PMPI_Win_f2c"];

entry! {
    /// Returns a window handle as an integer of Fortran (MPI-4.1 §19.3.4). libfompi's handles are
    /// the same integer in every language and ABI; a handle of the host MPI is converted by that
    /// MPI. Raises no error.
    MPI_Win_c2f PMPI_Win_c2f (win: MPI_Win) -> MPI_Fint { to_integer(win, C2F) }

    /// Returns the window handle of an integer of Fortran (MPI-4.1 §19.3.4): the inverse of
    /// MPI_Win_c2f. An integer that is not libfompi's is converted by the host MPI. Raises no
    /// error.
    MPI_Win_f2c PMPI_Win_f2c (win: MPI_Fint) -> MPI_Win { window_from_fortran(win) }

    /// Returns a window handle as an int of C (MPI-5.0 §20.3). A handle of the host MPI is
    /// converted by that MPI, with MPI_Win_c2f if it has no MPI_Win_toint. Raises no error.
    MPI_Win_toint PMPI_Win_toint (win: MPI_Win) -> c_int { to_integer(win, TOINT) }

    /// Returns the window handle of an int of C (MPI-5.0 §20.3): the inverse of MPI_Win_toint.
    /// Raises no error.
    MPI_Win_fromint PMPI_Win_fromint (win: c_int) -> MPI_Win { from_integer(win, FROMINT) }

    /// Returns the sum of an address and a displacement (MPI-4.1 §5.1.5). Computed here, in every
    /// ABI. Raises no error; an overflow wraps around.
    MPI_Aint_add PMPI_Aint_add (base: MPI_Aint, disp: MPI_Aint) -> MPI_Aint {
        base.wrapping_add(disp)
    }

    /// Returns the difference of two addresses (MPI-4.1 §5.1.5). Computed here, in every ABI.
    /// Raises no error; an overflow wraps around.
    MPI_Aint_diff PMPI_Aint_diff (one: MPI_Aint, other: MPI_Aint) -> MPI_Aint {
        one.wrapping_sub(other)
    }
}
