//! Family to which the host MPI belongs. The library serves only an MPI that names itself as one of
//! a known family, because it would misread the handles of another one. The name is that which the
//! MPI gives itself, in the first line of MPI_Get_library_version; a layer over another MPI
//! (MPItrampoline, Wi4MPI) names that MPI in a later line.

use super::handle::Abi;
use core::ffi::{CStr, c_char, c_int};
use core::mem::transmute_copy;
use fompi_sys::dl::{self, Library};

/// The families, for messages.
pub const SERVED: &str =
    "MPICH, Intel MPI, MVAPICH, Cray MPICH, ParaStation MPI, Open MPI, libmpi_abi";

/// The names in the first line in the MPICH ABI.
const MPICH: [&str; 5] =
    ["MPICH Version", "Intel(R) MPI Library", "MVAPICH", "CRAY MPICH", "ParaStation MPI"];

/// The name of an MPI, and what follows from it.
pub struct Named {
    /// the first line of MPI_Get_library_version
    pub line: String,
    /// its binary interface; `None`: not known
    pub abi: Option<Abi>,
}

impl Named {
    /// Reads the name of the library with this file name.
    pub fn of(library: Library, file: &str) -> Named {
        let text = version(library).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default().trim().to_owned();
        // The object of Open MPI that is the handle MPI_COMM_WORLD. All MPIs of its family have it,
        // whatever their name; a layer over one of them does not have it itself.
        let of_open_mpi =
            dl::object_defines(library.symbol(c"PMPI_Comm_size"), c"ompi_mpi_comm_world");
        let abi = abi(file, &line, of_open_mpi);
        Named { line, abi }
    }

    /// Whether this is Intel MPI.
    pub fn is_intel(&self) -> bool {
        self.line.starts_with("Intel")
    }
}

/// Returns the binary interface of an MPI.
fn abi(file: &str, line: &str, of_open_mpi: bool) -> Option<Abi> {
    if file.starts_with("libmpi_abi.") {
        Some(Abi::Standard)
    } else if of_open_mpi {
        Some(Abi::OpenMpi)
    } else {
        MPICH.iter().any(|name| names(line, name)).then_some(Abi::Mpich)
    }
}

/// Whether a line names a family: at its beginning, or after Cray's "MPI VERSION : " or
/// ParaStation's "=== ".
fn names(line: &str, family: &str) -> bool {
    let name = line.strip_prefix("MPI VERSION").unwrap_or(line);
    name.trim_start_matches([' ', ':', '=']).starts_with(family)
}

/// Returns the text of MPI_Get_library_version.
fn version(library: Library) -> Option<String> {
    type Version = unsafe extern "C-unwind" fn(*mut c_char, *mut c_int) -> c_int;
    let (address, mut text, mut length) =
        (library.symbol(c"PMPI_Get_library_version"), [0; 8192], 0);
    if address == 0 {
        return None;
    }
    // SAFETY: a function of that name has this type in every MPI.
    let version: Version = unsafe { transmute_copy(&address) };
    // SAFETY: the buffer is as long as MPI_MAX_LIBRARY_VERSION_STRING of every ABI; the call is
    // allowed at any time (MPI-4.1 §9.1.1).
    unsafe { version(text.as_mut_ptr(), &mut length) };
    // SAFETY: the buffer was zeroed and is longer than what is written to it.
    Some(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_known_by_what_they_say_of_themselves() {
        let mpich = [
            "MPICH Version:\t4.0.2",
            "MPICH Version:      5.0.2",
            "Intel(R) MPI Library 2021.18.1 for Linux* OS",
            "MVAPICH2 Version      :\t2.3.7",
            "MVAPICH Version       :\t4.0",
            "MPI VERSION    : CRAY MPICH version 8.1.29.25 (ANL base 3.4a2)",
            "=== ParaStation MPI 5.10.0-1 ===",
        ];
        for line in mpich {
            assert_eq!(abi("libmpi.so.12", line, false), Some(Abi::Mpich), "{line}");
        }
        let open_mpi = ["Open MPI v5.0.11, package: x", "IBM Spectrum MPI", "FUJITSU MPI Library"];
        for line in open_mpi {
            assert_eq!(abi("libmpi.so.40", line, true), Some(Abi::OpenMpi), "{line}");
        }
        assert_eq!(abi("libmpi_abi.so.1", "anything", false), Some(Abi::Standard));
    }

    #[test]
    fn an_mpi_that_is_not_known_has_no_family() {
        let unknown = [
            "",
            "HPE MPT 2.30  08/04/23 03:51:17",
            "HPE HMPT 2.30",
            "MPC version 4.2.0 C/C++",
            "NEC MPI: Version 3.5.0",
            "IBM Platform MPI",
            "MPItrampoline 5.4.0, using MPIABI 2.10.0, wrapping: MPICH Version: 4.2",
            "better than MPICH Version 4",
        ];
        for line in unknown {
            assert_eq!(abi("libmpi.so", line, false), None, "{line}");
        }
    }
}
