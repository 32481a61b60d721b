//! Binary interfaces of MPI libraries, and how this library holds their handles and statuses.

use fompi_base::sync::{AtomicUsize, Ordering};

/// A handle of the host MPI: MPI_Comm, MPI_Datatype, ...
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

/// A request handle of the host MPI that stands for a complete request as often as it is used, if
/// the MPI has one.
///
/// | value     | meaning                                           |
/// |-----------|---------------------------------------------------|
/// | `UNKNOWN` | no call has asked for a complete request yet      |
/// | `NONE`    | each complete request has to be made by a call    |
/// | other     | the handle                                        |
pub struct ReusableRequest(AtomicUsize);

const UNKNOWN: Handle = 0;
const NONE: Handle = 1;

impl ReusableRequest {
    /// Starts without knowing whether there is one.
    pub fn unknown() -> ReusableRequest {
        ReusableRequest(AtomicUsize::new(UNKNOWN))
    }

    /// Returns the handle, if there is one and it is known.
    #[inline(always)]
    pub fn known(&self) -> Option<Handle> {
        // Relaxed: the handle refers to no memory that this library has written.
        let handle = self.0.load(Ordering::Relaxed);
        (handle > NONE).then_some(handle)
    }

    /// Whether it is not known yet if there is one.
    pub fn is_unknown(&self) -> bool {
        // Relaxed: as in `known`.
        self.0.load(Ordering::Relaxed) == UNKNOWN
    }

    /// Records the handle, or that there is none.
    pub fn record(&self, handle: Option<Handle>) {
        // Relaxed: as in `known`. Threads that find out at the same time store the same value.
        self.0.store(handle.unwrap_or(NONE), Ordering::Relaxed);
    }
}

/// A buffer for an MPI_Status of any ABI (20, 24 or 32 bytes).
pub type Status = [u64; 8];
