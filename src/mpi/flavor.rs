//! The four kinds of calls that make a window.

/// The call that made a window (MPI-4.1 §12.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// MPI_Win_create
    Create,
    /// MPI_Win_allocate
    Allocate,
    /// MPI_Win_allocate_shared
    Shared,
    /// MPI_Win_create_dynamic
    Dynamic,
}

impl Flavor {
    /// Returns the name of the call that makes it.
    pub fn call(self) -> &'static str {
        match self {
            Flavor::Create => "MPI_Win_create",
            Flavor::Allocate => "MPI_Win_allocate",
            Flavor::Shared => "MPI_Win_allocate_shared",
            Flavor::Dynamic => "MPI_Win_create_dynamic",
        }
    }
}
