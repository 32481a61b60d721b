//! Limits of the system. A refused registration becomes an error with the requested size and the
//! limit that was in the way, because the user can act on both.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::sys::ibverbs::verbs::ibv_access_flags;
use crate::sys::ibverbs::{Domain, MemoryRegion};

/// Registers memory of this process.
pub fn register(
    domain: &Arc<Domain>,
    at: u64,
    bytes: u64,
    access: ibv_access_flags,
) -> Result<Arc<MemoryRegion>> {
    MemoryRegion::new(domain, at, bytes, access).map_err(|error| refused(error, bytes))
}

/// Turns the error of a registration into the one that the user gets.
fn refused(error: Error, bytes: u64) -> Error {
    match error {
        Error::System { errno: errno @ (libc::ENOMEM | libc::EPERM | libc::EAGAIN), .. } => {
            Error::Registration { bytes, errno, limit: locked_bytes_max() }
        }
        other => other,
    }
}

/// RLIMIT_MEMLOCK of this process.
fn locked_bytes_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a local variable.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    limit.rlim_cur
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_the_number_the_limit_and_the_remedy() {
        let error = Error::System { call: "ibv_reg_mr", errno: libc::ENOMEM };
        assert_eq!(
            refused(error, 1 << 30),
            Error::Registration { bytes: 1 << 30, errno: libc::ENOMEM, limit: locked_bytes_max() }
        );
        let error = Error::Registration { bytes: 1 << 30, errno: 12, limit: 65536 };
        let text = error.to_string();
        for part in ["1073741824 bytes", "65536 bytes (RLIMIT_MEMLOCK)", "`ulimit -l`"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
