//! Driver library of CUDA, libcuda.so, and not the run-time library, which uses it. Each knows the
//! memory that the other has allocated.
//!
//! Only memory that CUDA knows has attributes. A thread may have no current context, and its call
//! then fails where the driver wants one, so the copy is made in the context of the memory, or in
//! the primary context of its device, which is current only meanwhile.

use super::gpu_calls::{CopyDirection, GpuHandle, MemoryKind, Runtime, SUCCESS};
use crate::dl::{Library, c_functions};
use crate::number::Number;
use core::ffi::{c_int, c_uint};
use core::ptr;

// Addresses are pointers on the side of the host and integers on that of the device; both are
// passed in the same way. CUresult, CUdevice and CUpointer_attribute are int.
c_functions! {
    /// The functions that are called. CUDA 11 has all of them.
    Cuda {
        cuPointerGetAttribute(*mut u64, c_int, u64) -> c_int;
        cuMemcpy(u64, u64, usize) -> c_int;
        cuStreamSynchronize(GpuHandle) -> c_int;
        cuCtxGetCurrent(*mut GpuHandle) -> c_int;
        cuCtxPushCurrent_v2(GpuHandle) -> c_int;
        cuCtxPopCurrent_v2(*mut GpuHandle) -> c_int;
        cuDeviceGetCount(*mut c_int) -> c_int;
        cuDeviceGet(*mut c_int, c_int) -> c_int;
        cuDevicePrimaryCtxGetState(c_int, *mut c_uint, *mut c_int) -> c_int;
        cuDevicePrimaryCtxRetain(*mut GpuHandle, c_int) -> c_int;
        cuDevicePrimaryCtxRelease_v2(c_int) -> c_int;
    }
}

// CUpointer_attribute.
const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;
// CUmemorytype.
const UNKNOWN: u64 = 0;
const HOST: u64 = 1;
// CUresult.
const INVALID_CONTEXT: c_int = 201;

/// Returns the functions of the library; `None` if one is missing.
pub fn open(library: Library) -> Option<Box<dyn Runtime>> {
    Some(Box::new(Cuda::of(library).ok()?))
}

impl Runtime for Cuda {
    /// An error means that CUDA does not know the memory, or that CUDA is not initialised in this
    /// process, so that no memory of a device exists.
    fn kind(&self, address: u64) -> MemoryKind {
        let mut memory_type = self.attribute(MEMORY_TYPE, address);
        if memory_type == Err(INVALID_CONTEXT) {
            memory_type = self.in_context(address, || self.attribute(MEMORY_TYPE, address));
        }
        match memory_type {
            Ok(_) if self.attribute(IS_MANAGED, address).is_ok_and(|is| is != 0) => {
                MemoryKind::Device
            }
            Ok(HOST) => MemoryKind::Pinned,
            Ok(UNKNOWN) | Err(_) => MemoryKind::Host,
            Ok(_) => MemoryKind::Device,
        }
    }

    unsafe fn copy(&self, way: CopyDirection, here: u64, there: u64, bytes: usize) -> c_int {
        let (to, from) = way.ends(here, there);
        // SAFETY: guaranteed by the caller.
        self.in_context(there, || unsafe {
            way.arrived((self.cuMemcpy)(to, from, bytes), self.cuStreamSynchronize)
        })
    }
}

impl Cuda {
    /// Returns an attribute of memory, or the code of an error.
    fn attribute(&self, attribute: c_int, address: u64) -> Result<u64, c_int> {
        let mut answer = 0;
        // SAFETY: the attributes above are no longer than the place for the answer.
        match unsafe { (self.cuPointerGetAttribute)(&mut answer, attribute, address) } {
            SUCCESS => Ok(answer),
            code => Err(code),
        }
    }

    /// Does `work` while the context of the memory at `address` is current; if the memory has none,
    /// in the current context, or in the primary context of a device.
    fn in_context<R>(&self, address: u64, work: impl FnOnce() -> R) -> R {
        let (mut current, mut retained) = (ptr::null_mut(), None);
        // SAFETY: a place for the answer, which stays null without one.
        unsafe { (self.cuCtxGetCurrent)(&mut current) };
        let own = self.attribute(CONTEXT, address).unwrap_or(0);
        let mut wanted: GpuHandle = ptr::with_exposed_provenance_mut(own.to_usize());
        if wanted.is_null() && current.is_null() {
            retained = self.primary(address);
            wanted = retained.map_or(ptr::null_mut(), |(context, _)| context);
        }
        // SAFETY: a context that exists; it is the current one until it is popped.
        let is_pushed = !wanted.is_null()
            && !ptr::eq(wanted, current)
            && unsafe { (self.cuCtxPushCurrent_v2)(wanted) } == SUCCESS;
        let answer = work();
        if is_pushed {
            // SAFETY: pops what was pushed above.
            unsafe { (self.cuCtxPopCurrent_v2)(&mut wanted) };
        }
        if let Some((_, device)) = retained {
            // SAFETY: retained above.
            unsafe { (self.cuDevicePrimaryCtxRelease_v2)(device) };
        }
        answer
    }

    /// Retains the primary context of the device with the memory at `address`, or of any device of
    /// which it is in use.
    fn primary(&self, address: u64) -> Option<(GpuHandle, c_int)> {
        let own = self.attribute(DEVICE_ORDINAL, address).map(|own| own.low_u32().cast_signed());
        let mut count = 0;
        // SAFETY: a place for the answer.
        unsafe { (self.cuDeviceGetCount)(&mut count) };
        own.into_iter().chain(0..count).find_map(|ordinal| {
            let (mut device, mut flags, mut active, mut context) = (0, 0, 0, ptr::null_mut());
            // SAFETY: places for the answers.
            let is_retained = unsafe {
                (self.cuDeviceGet)(&mut device, ordinal) == SUCCESS
                    && (self.cuDevicePrimaryCtxGetState)(device, &mut flags, &mut active) == SUCCESS
                    && active != 0
                    && (self.cuDevicePrimaryCtxRetain)(&mut context, device) == SUCCESS
            };
            is_retained.then_some((context, device))
        })
    }
}
