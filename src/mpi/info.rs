//! Info objects of the host MPI. Not for the effect of their keys on a window.

use super::comm::{Comm, check};
use super::datatype::STANDARD_PREDEFINED_END;
use super::handle::Abi;
use super::{Handle, Host};
use crate::error::{Error, Result};
use crate::messages;
use crate::number::Number;
use std::ffi::CString;

/// The key of the kinds of memory that an MPI supports (MPI-4.1 §12.4.3).
pub const KINDS: &str = "mpi_memory_alloc_kinds";

/// MPI_INFO_ENV of the MPI-5 ABI (MPI-5.0 §20.3).
const INFO_ENV: Handle = 0x131;

/// Returns the kinds of memory that the host MPI supports for a communicator, and so for its
/// windows (MPI-4.1 §12.4.3); `None` if it does not report them.
pub fn memory_kinds(host: &Host, comm: Comm) -> Result<Option<String>> {
    let (Some(get_info), Some(free)) = (host.call.comm_get_info, host.call.info_free) else {
        return Ok(None);
    };
    let mut info: Handle = 0;
    // SAFETY: a communicator of ours and an out parameter.
    check(unsafe { get_info(comm.0, &mut info) })?;
    let kinds = value(host, host.handle(info), KINDS);
    // SAFETY: the info object that was just made for us.
    check(unsafe { free(&mut info) })?;
    kinds
}

/// Returns whether a handle can be that of an info object, as far as the handle shows it. Calls of
/// the host MPI with other handles may end the process.
fn may_be_info(host: &Host, info: Handle) -> bool {
    match host.abi {
        // Bits 30 and 31 are the storage, 0 is none; bits 26 to 29 are the kind of object.
        Abi::Mpich => info >> 30 != 0 && info >> 26 & 0xf == 7,
        Abi::OpenMpi => info != 0 && info.is_multiple_of(align_of::<usize>()),
        Abi::Standard => info == INFO_ENV || info >= STANDARD_PREDEFINED_END,
    }
}

/// Returns the value of `key` in an info object; `None` if it does not have the key.
///
/// # Errors
/// MPI_ERR_INFO if the handle cannot be that of an info object.
pub fn value(host: &Host, info: Handle, key: &str) -> Result<Option<String>> {
    if !may_be_info(host, info) {
        return Err(Error::Wrong(&messages::INFO));
    }
    let mut value = vec![0_u8; host.constants.max_info_val.cast_unsigned().to_usize() + 1];
    let (mut found, length) = (0, host.constants.max_info_val - 1);
    let key = CString::new(key).unwrap_or_default();
    let text = value.as_mut_ptr().cast();
    // SAFETY: `value` has room for `length` characters and the final zero.
    check(unsafe { (host.call.info_get)(info, key.as_ptr(), length, text, &mut found) })?;
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(0);
    value.truncate(end);
    Ok((found != 0).then(|| String::from_utf8_lossy(&value).into_owned()))
}
