//! What MPI libraries differ in at the lowest level: their binary interface, and how
//! this library holds their handles and statuses.

/// A handle of the MPI underneath: MPI_Comm, MPI_Datatype, ...
pub type Handle = usize;

/// The three binary interfaces that MPI libraries have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// MPICH, Intel MPI, MVAPICH, Cray MPICH: handles are 32-bit integers
    Mpich,
    /// Open MPI: handles are pointers to its objects
    OpenMpi,
    /// MPI-5.0 chapter 20: handles are pointers with fixed values
    Standard,
}

/// A buffer for an MPI_Status of any ABI (20, 24 or 32 bytes).
pub type Status = [u64; 8];
