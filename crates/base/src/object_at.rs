//! The loaded file that holds an address.

use core::ffi::CStr;
use std::ffi::CString;

/// Returns path and base address of the program or library that holds `address`.
pub fn object_at(address: usize) -> Option<(CString, usize)> {
    // SAFETY: plain data, for which zero is a value.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    let at = core::ptr::without_provenance(address);
    // SAFETY: `info` is ours; any address may be asked for.
    if unsafe { libc::dladdr(at, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a C string of the loader's that lives as long as the library.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_owned();
    Some((path, info.dli_fbase as usize))
}
