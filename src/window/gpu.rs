//! Whether the program may pass memory of a GPU, which loads and stores cannot reach: where the
//! run-time library of one is loaded, windows are left to the MPI underneath.

use crate::sys::dl;

/// Libraries that hand out memory of a GPU.
const RUNTIMES: [&str; 3] = ["libcuda.so", "libamdhip64.so", "libze_loader.so"];

/// Whether one of them is loaded now.
pub fn loaded() -> bool {
    dl::any_loaded(|name| RUNTIMES.iter().any(|runtime| name.starts_with(runtime)))
}
