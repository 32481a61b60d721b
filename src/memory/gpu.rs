//! Memory of GPUs, which loads and stores do not reach. A program may pass such memory where the
//! run-time library of one is loaded; windows are then left to the MPI underneath.

use crate::sys::dl;

/// Libraries that allocate memory of a GPU.
const RUNTIMES: [&str; 3] = ["libcuda.so", "libamdhip64.so", "libze_loader.so"];

/// Returns whether such a library is loaded now.
pub fn is_loaded() -> bool {
    dl::any_loaded(|name| RUNTIMES.iter().any(|runtime| name.starts_with(runtime)))
}
