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

/// Whether words are exchanged in pairs by CMPXCHG16B, which processors without AVX2 may lack.
#[inline(always)]
pub fn uses_cmpxchg16b() -> bool {
    vectors() != Vectors::Baseline && std::is_x86_feature_detected!("cmpxchg16b")
}

/// AVX-512 counts only with VBMI2: processors without that lower their clock for vectors of 64
/// bytes, so AVX2 is faster there.
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

    /// The vectors that a test of this thread has selected.
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
