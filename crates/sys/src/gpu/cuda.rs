//! Driver library of CUDA, libcuda.so, and not the run-time library, which uses it. Each knows the
//! memory that the other has allocated.
//!
//! Only memory that CUDA knows has attributes. A thread may have no current context, and its call
//! then fails where the driver wants one, so the copy is made in the context of the memory, or in
//! the primary context of its device, which is current only meanwhile.

use super::gpu_calls::{CopyDirection, MemoryKind, SUCCESS, function};
use crate::dl::Library;
use crate::number::Number;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr;

type GetAttribute = unsafe extern "C" fn(*mut c_void, c_int, u64) -> c_int;
/// Addresses are pointers on the side of the host and integers on that of the device; both are
/// passed in the same way.
type Copy = unsafe extern "C" fn(u64, u64, usize) -> c_int;
type OnContext = unsafe extern "C" fn(*mut c_void) -> c_int;
type GetContext = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type GetCount = unsafe extern "C" fn(*mut c_int) -> c_int;
type GetDevice = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type GetState = unsafe extern "C" fn(c_int, *mut c_uint, *mut c_int) -> c_int;
type Retain = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;
type Release = unsafe extern "C" fn(c_int) -> c_int;

// CUpointer_attribute.
const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;
// CUmemorytype.
const UNKNOWN: c_uint = 0;
const HOST: c_uint = 1;
// CUresult.
const INVALID_CONTEXT: c_int = 201;

/// The functions of the library.
pub struct Cuda {
    get_attribute: GetAttribute,
    to_host: Copy,
    to_device: Copy,
    contexts: Option<Contexts>,
    devices: Option<Devices>,
    synchronize: Option<OnContext>,
}

struct Contexts {
    get_current: GetContext,
    push: OnContext,
    pop: GetContext,
}

struct Devices {
    count: GetCount,
    get: GetDevice,
    state: GetState,
    retain: Retain,
    release: Release,
}

impl Cuda {
    /// Returns the functions; `None` if one is missing without which memory cannot be found or
    /// copied.
    pub fn of(library: Library) -> Option<Cuda> {
        // SAFETY: the prototypes are those of cuda.h; CUresult, CUdevice and CUpointer_attribute
        // are int, a stream and a context are pointers.
        unsafe {
            let either = |one, other| {
                let newer: Option<Copy> = function(library, one);
                newer.or_else(|| function(library, other))
            };
            let (to_host, to_device) = match either(c"cuMemcpy", c"cuMemcpy_v2") {
                Some(copy) => (copy, copy),
                None => (
                    either(c"cuMemcpyDtoH_v2", c"cuMemcpyDtoH")?,
                    either(c"cuMemcpyHtoD_v2", c"cuMemcpyHtoD")?,
                ),
            };
            Some(Cuda {
                get_attribute: function(library, c"cuPointerGetAttribute")?,
                to_host,
                to_device,
                contexts: Contexts::of(library),
                devices: Devices::of(library),
                synchronize: function(library, c"cuStreamSynchronize"),
            })
        }
    }

    /// Returns where memory is. An error means that CUDA does not know it, or that CUDA is not
    /// initialised in this process, so that no memory of a device exists.
    pub fn kind(&self, address: u64) -> MemoryKind {
        let mut memory_type = u64::from(UNKNOWN);
        let mut code = self.attribute(MEMORY_TYPE, address, &mut memory_type);
        if code == INVALID_CONTEXT {
            code =
                self.in_context(address, || self.attribute(MEMORY_TYPE, address, &mut memory_type));
        }
        let mut is_managed = 0;
        if code == SUCCESS && self.attribute(IS_MANAGED, address, &mut is_managed) != SUCCESS {
            is_managed = 0;
        }
        #[expect(clippy::cast_possible_truncation)] // an unsigned int
        match (code, memory_type as c_uint) {
            (SUCCESS, _) if is_managed != 0 => MemoryKind::Device,
            (SUCCESS, HOST) => MemoryKind::Pinned,
            (SUCCESS, UNKNOWN) => MemoryKind::Host,
            (SUCCESS, _) => MemoryKind::Device,
            _ => MemoryKind::Host,
        }
    }

    /// Asks for an attribute, which is at most eight bytes long.
    fn attribute(&self, attribute: c_int, address: u64, answer: &mut u64) -> c_int {
        // SAFETY: the attributes above are no longer than the place for the answer.
        unsafe { (self.get_attribute)(ptr::from_mut(answer).cast(), attribute, address) }
    }

    /// Copies memory. Returns the code of an error, or 0.
    ///
    /// # Safety
    /// As for `Runtime::copy`.
    pub unsafe fn copy(&self, way: CopyDirection, here: u64, there: u64, bytes: usize) -> c_int {
        self.in_context(there, || {
            // SAFETY: the caller's promise.
            unsafe {
                match way {
                    CopyDirection::ToHost => (self.to_host)(here, there, bytes),
                    CopyDirection::ToDevice => match (self.to_device)(there, here, bytes) {
                        // A copy from memory that is not pinned may still be on its way.
                        SUCCESS => self.synchronize.map_or(SUCCESS, |wait| wait(ptr::null_mut())),
                        code => code,
                    },
                }
            }
        })
    }

    /// Does `work` while the context of the memory at `address` is current; if the memory has none,
    /// in the current context, or in the primary context of a device.
    fn in_context(&self, address: u64, work: impl FnOnce() -> c_int) -> c_int {
        let Some(contexts) = &self.contexts else { return work() };
        let (mut current, mut wanted) = (ptr::null_mut(), 0);
        // SAFETY: a place for the answer.
        if unsafe { (contexts.get_current)(&mut current) } != SUCCESS {
            current = ptr::null_mut();
        }
        if self.attribute(CONTEXT, address, &mut wanted) != SUCCESS {
            wanted = 0;
        }
        let mut wanted: *mut c_void = ptr::with_exposed_provenance_mut(wanted.to_usize());
        let mut retained = None;
        if wanted.is_null() && current.is_null() {
            retained = self.primary(address);
            wanted = retained.map_or(ptr::null_mut(), |(context, _)| context);
        }
        // SAFETY: a context that exists; it is the current one until it is popped.
        let is_pushed = !wanted.is_null()
            && !ptr::eq(wanted, current)
            && unsafe { (contexts.push)(wanted) } == SUCCESS;
        let code = work();
        if is_pushed {
            // SAFETY: pops what was pushed above.
            unsafe { (contexts.pop)(&mut wanted) };
        }
        if let (Some(devices), Some((_, device))) = (&self.devices, retained) {
            // SAFETY: retained above.
            unsafe { (devices.release)(device) };
        }
        code
    }

    /// Retains the primary context of the device with the memory at `address`, or of any device of
    /// which it is in use.
    fn primary(&self, address: u64) -> Option<(*mut c_void, c_int)> {
        let devices = self.devices.as_ref()?;
        let (mut ordinal, mut count) = (0, 0);
        // SAFETY: a place for the answer.
        if unsafe { (devices.count)(&mut count) } != SUCCESS {
            return None;
        }
        let own = self.attribute(DEVICE_ORDINAL, address, &mut ordinal) == SUCCESS;
        #[expect(clippy::cast_possible_truncation)] // an int
        let own = own.then_some(ordinal as c_int);
        own.into_iter().chain(0..count).find_map(|ordinal| devices.primary(ordinal))
    }
}

impl Contexts {
    fn of(library: Library) -> Option<Contexts> {
        // SAFETY: the prototypes of cuda.h.
        unsafe {
            Some(Contexts {
                get_current: function(library, c"cuCtxGetCurrent")?,
                push: function(library, c"cuCtxPushCurrent_v2")?,
                pop: function(library, c"cuCtxPopCurrent_v2")?,
            })
        }
    }
}

impl Devices {
    fn of(library: Library) -> Option<Devices> {
        // SAFETY: the prototypes of cuda.h.
        unsafe {
            let release: Option<Release> = function(library, c"cuDevicePrimaryCtxRelease_v2");
            Some(Devices {
                count: function(library, c"cuDeviceGetCount")?,
                get: function(library, c"cuDeviceGet")?,
                state: function(library, c"cuDevicePrimaryCtxGetState")?,
                retain: function(library, c"cuDevicePrimaryCtxRetain")?,
                release: release.or_else(|| function(library, c"cuDevicePrimaryCtxRelease"))?,
            })
        }
    }

    /// Retains the primary context of a device, if it is in use.
    fn primary(&self, ordinal: c_int) -> Option<(*mut c_void, c_int)> {
        let (mut device, mut flags, mut active) = (0, 0, 0);
        let mut context = ptr::null_mut();
        // SAFETY: places for the answers.
        let found = unsafe {
            (self.get)(&mut device, ordinal) == SUCCESS
                && (self.state)(device, &mut flags, &mut active) == SUCCESS
                && active != 0
                && (self.retain)(&mut context, device) == SUCCESS
        };
        found.then_some((context, device))
    }
}
