//! Features of the processor beyond the baseline of its architecture. The first use detects them;
//! later ones load the result.

use crate::sync::{AtomicU8, Ordering};

/// The widest vectors that the loops use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Vectors {
    /// those of every processor of the architecture
    Baseline = 1,
    /// 32 bytes
    Avx2,
    /// 64 bytes
    Avx512,
}

/// The widest vectors, or 0: not yet known.
static VECTORS: AtomicU8 = AtomicU8::new(0);

/// Returns the widest vectors of this processor.
#[inline(always)]
pub fn vectors() -> Vectors {
    #[cfg(test)]
    if let Some(vectors) = tests::forced() {
        return vectors;
    }
    // Relaxed: the number orders nothing else, and every thread finds the same one.
    match VECTORS.load(Ordering::Relaxed) {
        1 => Vectors::Baseline,
        2 => Vectors::Avx2,
        3 => Vectors::Avx512,
        _ => find(),
    }
}

/// Whether this processor has the compare-exchange of sixteen bytes. All with wide vectors have it.
#[inline(always)]
pub fn exchanges_pairs() -> bool {
    vectors() != Vectors::Baseline && std::is_x86_feature_detected!("cmpxchg16b")
}

/// VBMI2 came with the processors that do not run slower while they use vectors of 64 bytes; for
/// the older ones AVX2 is better.
#[cold]
fn find() -> Vectors {
    use std::is_x86_feature_detected as has;
    let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    let vectors = if avx512 && has!("avx512vbmi2") {
        Vectors::Avx512
    } else if has!("avx2") {
        Vectors::Avx2
    } else {
        Vectors::Baseline
    };
    // Relaxed: as the load.
    VECTORS.store(vectors as u8, Ordering::Relaxed);
    vectors
}

#[cfg(test)]
pub use tests::with_all;

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    thread_local! {
        static FORCED: Cell<Option<Vectors>> = const { Cell::new(None) };
    }

    /// The vectors that the tests of this thread ask for.
    pub fn forced() -> Option<Vectors> {
        FORCED.get()
    }

    /// Runs a test for all vectors that this processor has, one after the other.
    pub fn with_all(mut test: impl FnMut(Vectors)) {
        let widest = vectors();
        for vectors in [Vectors::Baseline, Vectors::Avx2, Vectors::Avx512] {
            if vectors <= widest {
                FORCED.set(Some(vectors));
                test(vectors);
            }
        }
        FORCED.set(None);
    }
}
