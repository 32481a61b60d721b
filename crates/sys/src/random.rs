//! Random bytes of the system, which cannot be predicted.

use super::{last_error, uninterrupted};
use crate::error::Result;

/// Returns `N` random bytes, 256 at most: the system gives these at once or not at all
/// (getrandom(2)).
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    const { assert!(N <= 256) };
    let mut bytes = [0; N];
    // SAFETY: the bytes of a local array.
    let count = uninterrupted(|| unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) });
    if count == N.cast_signed() { Ok(bytes) } else { Err(last_error("getrandom")) }
}
