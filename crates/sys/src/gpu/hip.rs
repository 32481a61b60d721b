//! The run-time library of HIP, libamdhip64.so.
//!
//! | value | ROCm 5 and older | since ROCm 6              |
//! |-------|------------------|---------------------------|
//! | 0     | host             | not known to HIP          |
//! | 1     | device           | host                      |
//! | 2     | array            | device                    |
//! | 3     | unified          | managed                   |
//! | more  | managed          | array (10), unified (11)  |
//!
//! Both have the value at the begin of `hipPointerAttribute_t`. ROCm 5 answers with an error for
//! memory that HIP does not know.

use super::gpu_calls::{CopyDirection, MemoryKind, SUCCESS, function};
use crate::dl::Library;
use core::ffi::{c_int, c_void};
use core::ptr;

/// `hipPointerAttribute_t`, with room for a longer one.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    memory_type: c_int,
    device: c_int,
    device_pointer: u64,
    host_pointer: u64,
    is_managed: c_int,
    flags: c_int,
    more: [u64; 8],
}

type GetAttributes = unsafe extern "C" fn(*mut Attributes, u64) -> c_int;
type Copy = unsafe extern "C" fn(u64, u64, usize, c_int) -> c_int;
type GetVersion = unsafe extern "C" fn(*mut c_int) -> c_int;
type LastError = unsafe extern "C" fn() -> c_int;
type Synchronize = unsafe extern "C" fn(*mut c_void) -> c_int;

/// `hipMemcpyDefault`: HIP finds out where both sides are.
const DEFAULT: c_int = 4;

/// The meaning of the values of `hipMemoryType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// those of ROCm 5 and older
    Old,
    /// those since ROCm 6
    New,
}

/// The functions of the library.
pub struct Hip {
    get_attributes: GetAttributes,
    copy: Copy,
    values: Values,
    peek_error: Option<LastError>,
    clear_error: Option<LastError>,
    synchronize: Option<Synchronize>,
}

impl Hip {
    /// Returns the functions; `None` if one is missing. `name`: the file name of the library.
    pub fn of(library: Library, name: &str) -> Option<Hip> {
        // SAFETY: the prototypes of hip_runtime_api.h; hipError_t is an int.
        unsafe {
            let get_attributes: GetAttributes = function(library, c"hipPointerGetAttributes")?;
            Some(Hip {
                get_attributes,
                copy: function(library, c"hipMemcpy")?,
                values: values(function(library, c"hipRuntimeGetVersion"), name, || {
                    knows_all(get_attributes)
                }),
                peek_error: function(library, c"hipPeekAtLastError"),
                clear_error: function(library, c"hipGetLastError"),
                synchronize: function(library, c"hipStreamSynchronize"),
            })
        }
    }

    /// Returns where memory is.
    pub fn kind(&self, address: u64) -> MemoryKind {
        let mut found = Attributes::default();
        // SAFETY: no arguments.
        let before = self.peek_error.map(|peek| unsafe { peek() });
        // SAFETY: a place for the answer, longer than that is.
        if unsafe { (self.get_attributes)(&mut found, address) } == SUCCESS {
            return kind_of(self.values, found.memory_type, found.is_managed != 0);
        }
        // The program may read the last error, which must be one of its own.
        if let (Some(SUCCESS), Some(clear)) = (before, self.clear_error) {
            // SAFETY: no arguments.
            unsafe { clear() };
        }
        MemoryKind::Host
    }

    /// Copies memory. Returns the code of an error, or 0.
    ///
    /// # Safety
    /// As for `Runtime::copy`.
    pub unsafe fn copy(&self, way: CopyDirection, here: u64, there: u64, bytes: usize) -> c_int {
        // SAFETY: the caller's promise.
        unsafe {
            match way {
                CopyDirection::ToHost => (self.copy)(here, there, bytes, DEFAULT),
                CopyDirection::ToDevice => match (self.copy)(there, here, bytes, DEFAULT) {
                    // A copy from memory that is not pinned may still be on its way.
                    SUCCESS => self.synchronize.map_or(SUCCESS, |wait| wait(ptr::null_mut())),
                    code => code,
                },
            }
        }
    }
}

/// Whether the library answers without an error for memory that it does not know.
fn knows_all(get_attributes: GetAttributes) -> bool {
    let (mut found, own) = (Attributes::default(), 0_u64);
    let address = ptr::from_ref(&own).expose_provenance() as u64;
    // SAFETY: a place for the answer, longer than that is.
    unsafe { get_attributes(&mut found, address) == SUCCESS }
}

/// Returns the values that the library uses: by its version, otherwise by its file name, otherwise
/// by its answer for memory that it does not know.
fn values(get_version: Option<GetVersion>, name: &str, knows_all: impl FnOnce() -> bool) -> Values {
    /// HIP_VERSION of HIP 6.0.0.
    const NEW: c_int = 60_000_000;
    let mut version = 0;
    if let Some(get_version) = get_version
        // SAFETY: a place for the answer.
        && unsafe { get_version(&mut version) } == SUCCESS
        && version > 0
    {
        return if version >= NEW { Values::New } else { Values::Old };
    }
    let major = name.split_once(".so.").and_then(|(_, version)| version.split('.').next());
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= 6 => Values::New,
        Some(_) => Values::Old,
        None if knows_all() => Values::New,
        None => Values::Old,
    }
}

fn kind_of(values: Values, memory_type: c_int, is_managed: bool) -> MemoryKind {
    match (values, memory_type) {
        _ if is_managed => MemoryKind::Device,
        (Values::Old, 0) | (Values::New, 1) => MemoryKind::Pinned,
        (Values::New, 0) => MemoryKind::Host,
        _ => MemoryKind::Device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// # Safety
    /// The version may be written.
    unsafe extern "C" fn five(version: *mut c_int) -> c_int {
        // SAFETY: the place of the caller.
        unsafe { version.write(50_731_921) };
        SUCCESS
    }

    /// # Safety
    /// None.
    unsafe extern "C" fn fails(_: *mut c_int) -> c_int {
        1
    }

    #[test]
    fn the_values_are_those_of_the_version() {
        let values = |version, name, knows_all| super::values(version, name, || knows_all);
        let five = Some(five as GetVersion);
        let fails = Some(fails as GetVersion);
        assert_eq!(values(five, "libamdhip64.so.6", true), Values::Old);
        assert_eq!(values(fails, "libamdhip64.so.6", false), Values::New);
        assert_eq!(values(None, "libamdhip64.so.5.7.50700", true), Values::Old);
        assert_eq!(values(None, "libamdhip64.so.10", false), Values::New);
        assert_eq!(values(None, "libamdhip64.so", true), Values::New);
        assert_eq!(values(None, "libamdhip64.so", false), Values::Old);
    }

    #[test]
    fn each_value_of_each_version_has_its_kind() {
        use MemoryKind::{Device, Host, Pinned};
        let rows = [
            (Values::Old, [Pinned, Device, Device, Device, Device, Device]),
            (Values::New, [Host, Pinned, Device, Device, Device, Device]),
        ];
        for (values, kinds) in rows {
            for (memory_type, kind) in [0, 1, 2, 3, 10, 11].into_iter().zip(kinds) {
                assert_eq!(kind_of(values, memory_type, false), kind);
                assert_eq!(kind_of(values, memory_type, true), Device);
            }
        }
    }
}
