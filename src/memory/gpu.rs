//! Memory of GPUs, which loads and stores do not reach. A program may pass such memory where the
//! run-time library of one is loaded; windows are then left to the MPI underneath.

use crate::sync::{AtomicU64, Ordering};
use crate::sys::dl;

/// Libraries that allocate memory of a GPU.
const RUNTIMES: [&str; 3] = ["libcuda.so", "libamdhip64.so", "libze_loader.so"];

/// The state of the process when such a library was last looked for: twice the number of changes
/// of its libraries, and 1 if there was one; `NEVER` before.
static LOOKED: AtomicU64 = AtomicU64::new(NEVER);
const NEVER: u64 = u64::MAX;

/// Returns whether such a library is loaded now. Looks through the libraries only if one was loaded
/// or unloaded since the last call: a program may have hundreds of them.
pub fn is_loaded() -> bool {
    let look = || dl::any_loaded(|name| RUNTIMES.iter().any(|runtime| name.starts_with(runtime)));
    let Some(changes) = dl::changes() else { return look() };
    // Relaxed: the word is all that is passed on.
    let looked = LOOKED.load(Ordering::Relaxed);
    if looked != NEVER && looked / 2 == changes {
        return looked % 2 == 1;
    }
    let found = look();
    LOOKED.store(2 * changes + u64::from(found), Ordering::Relaxed);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_are_looked_through_again_when_they_have_changed() {
        assert!(!is_loaded() && !is_loaded());
        let changes = dl::changes().expect("the C library counts");
        // Another thread of the tests may load a library meanwhile.
        LOOKED.store(2 * changes + 1, Ordering::Relaxed);
        assert!(is_loaded() || dl::changes() != Some(changes), "what was found is believed");
        LOOKED.store(2 * (changes - 1) + 1, Ordering::Relaxed);
        assert!(!is_loaded());
        LOOKED.store(NEVER, Ordering::Relaxed);
    }
}
