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

use super::gpu_calls::{CopyDirection, GpuHandle, MemoryKind, Runtime, SUCCESS};
use crate::dl::{Library, c_functions};
use core::ffi::c_int;

/// `hipPointerAttribute_t`, with room for a longer one.
#[repr(C)]
#[derive(Default)]
pub struct PointerAttributes {
    memory_type: c_int,
    device: c_int,
    device_pointer: u64,
    host_pointer: u64,
    is_managed: c_int,
    flags: c_int,
    more: [u64; 8],
}

c_functions! {
    /// The functions that are called; hipError_t is an int.
    Functions {
        hipPointerGetAttributes(*mut PointerAttributes, u64) -> c_int;
        hipMemcpy(u64, u64, usize, c_int) -> c_int;
        hipStreamSynchronize(GpuHandle) -> c_int;
        hipRuntimeGetVersion(*mut c_int) -> c_int;
        hipPeekAtLastError() -> c_int;
        hipGetLastError() -> c_int;
    }
}

/// `hipMemcpyDefault`: HIP finds out where both sides are.
const DEFAULT: c_int = 4;
/// HIP_VERSION of HIP 6.0.0.
const NEW: c_int = 60_000_000;

struct Hip {
    call: Functions,
    /// whether its values are those since ROCm 6
    is_new: bool,
}

/// Returns the functions of the library; `None` if one is missing.
pub fn open(library: Library) -> Option<Box<dyn Runtime>> {
    let (call, mut version) = (Functions::of(library).ok()?, 0);
    // Without an answer the old values count: by these, pinned memory of a new library is that of a
    // device, which `DEFAULT` copies, too.
    // SAFETY: a place for the answer.
    unsafe { (call.hipRuntimeGetVersion)(&mut version) };
    Some(Box::new(Hip { call, is_new: version >= NEW }))
}

impl Runtime for Hip {
    fn kind(&self, address: u64) -> MemoryKind {
        let mut found = PointerAttributes::default();
        // SAFETY: no arguments.
        let before = unsafe { (self.call.hipPeekAtLastError)() };
        // SAFETY: a place for the answer, longer than that is.
        if unsafe { (self.call.hipPointerGetAttributes)(&mut found, address) } == SUCCESS {
            return kind_of(self.is_new, found.memory_type, found.is_managed != 0);
        }
        // The program may read the last error, which must be one of its own.
        if before == SUCCESS {
            // SAFETY: no arguments.
            unsafe { (self.call.hipGetLastError)() };
        }
        MemoryKind::Host
    }

    unsafe fn copy(&self, way: CopyDirection, here: u64, there: u64, bytes: usize) -> c_int {
        let (to, from) = way.ends(here, there);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let code = (self.call.hipMemcpy)(to, from, bytes, DEFAULT);
            way.arrived(code, self.call.hipStreamSynchronize)
        }
    }
}

fn kind_of(is_new: bool, memory_type: c_int, is_managed: bool) -> MemoryKind {
    match (is_new, memory_type) {
        _ if is_managed => MemoryKind::Device,
        (false, 0) | (true, 1) => MemoryKind::Pinned,
        (true, 0) => MemoryKind::Host,
        _ => MemoryKind::Device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_of_each_version_has_its_kind() {
        use MemoryKind::{Device, Host, Pinned};
        let rows = [
            (false, [Pinned, Device, Device, Device, Device, Device]),
            (true, [Host, Pinned, Device, Device, Device, Device]),
        ];
        for (is_new, kinds) in rows {
            for (memory_type, kind) in [0, 1, 2, 3, 10, 11].into_iter().zip(kinds) {
                assert_eq!(kind_of(is_new, memory_type, false), kind);
                assert_eq!(kind_of(is_new, memory_type, true), Device);
            }
        }
    }
}
