//! The loader of oneAPI Level Zero, libze_loader.so.
//!
//! Level Zero answers where memory is for a context, and memory belongs to one. The contexts of the
//! program cannot be asked for. This library makes one of its own for each driver, as MPICH and
//! Open MPI do. The driver of Intel finds memory of any context of the same driver, although the
//! specification allows ZE_MEMORY_TYPE_UNKNOWN for that of another one. Whether it does is tried
//! out once, with memory of a second context ([`LevelZero::knows_memory_of_another`]).

use super::gpu_calls::{CopyDirection, GpuHandle, MemoryKind, Runtime, SUCCESS};
use crate::dl::{Library, c_functions};
use core::ffi::{c_int, c_void};
use core::ptr;
use parking_lot::{Mutex, MutexGuard};

/// `ze_context_desc_t` and `ze_host_mem_alloc_desc_t`, which have one number, and
/// `ze_command_queue_desc_t`: ordinal, index, flags, mode, priority.
#[repr(C)]
pub struct Description {
    stype: u32,
    next: *const c_void,
    numbers: [u32; 5],
}

/// `ze_memory_allocation_properties_t`.
#[repr(C)]
pub struct Properties {
    stype: u32,
    next: *const c_void,
    memory_type: u32,
    id: u64,
    page_bytes: u64,
}

c_functions! {
    /// The functions that are called; ze_result_t is an int.
    Functions {
        zeDriverGet(*mut u32, *mut GpuHandle) -> c_int;
        zeDeviceGet(GpuHandle, *mut u32, *mut GpuHandle) -> c_int;
        zeContextCreate(GpuHandle, *const Description, *mut GpuHandle) -> c_int;
        zeContextDestroy(GpuHandle) -> c_int;
        zeMemGetAllocProperties(GpuHandle, u64, *mut Properties, *mut GpuHandle) -> c_int;
        zeMemAllocHost(GpuHandle, *const Description, usize, usize, *mut u64) -> c_int;
        zeMemFree(GpuHandle, u64) -> c_int;
        zeCommandListCreateImmediate
            (GpuHandle, GpuHandle, *const Description, *mut GpuHandle) -> c_int;
        zeCommandListAppendMemoryCopy
            (GpuHandle, u64, u64, usize, GpuHandle, u32, *mut GpuHandle) -> c_int;
    }
}

// ze_structure_type_t.
const CONTEXT_DESC: u32 = 0xd;
const COMMAND_QUEUE_DESC: u32 = 0xe;
const HOST_MEM_ALLOC_DESC: u32 = 0x16;
const MEMORY_ALLOCATION_PROPERTIES: u32 = 0x17;
// ze_memory_type_t.
const UNKNOWN: u32 = 0;
const HOST: u32 = 1;
/// ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS: a command is complete when the call returns.
const SYNCHRONOUS: u32 = 1;
/// ZE_RESULT_ERROR_UNINITIALIZED.
const UNINITIALIZED: c_int = 0x7800_0001;

/// Returns a description without a flag.
fn description(stype: u32) -> Description {
    Description { stype, next: ptr::null(), numbers: [0; 5] }
}

/// A driver, and what was made in it.
struct Driver {
    driver: GpuHandle,
    /// the context that is asked
    context: GpuHandle,
    knows_other_contexts: bool,
    /// devices, and immediate command lists by which they copy
    lists: Vec<(GpuHandle, GpuHandle)>,
}

// SAFETY: handles may be used from any thread; the mutex keeps threads apart that use one list.
unsafe impl Send for Driver {}

struct LevelZero {
    call: Functions,
    /// none: the program has not initialised the library yet
    drivers: Mutex<Vec<Driver>>,
}

/// Returns the functions of the library; `None` if one is missing.
pub fn open(library: Library) -> Option<Box<dyn Runtime>> {
    let call = Functions::of(library).ok()?;
    Some(Box::new(LevelZero { call, drivers: Mutex::new(Vec::new()) }))
}

impl Runtime for LevelZero {
    fn kind(&self, address: u64) -> MemoryKind {
        match self.find(&mut self.drivers(), address) {
            None => MemoryKind::Host,
            Some((_, HOST, _)) => MemoryKind::Pinned,
            Some(_) => MemoryKind::Device,
        }
    }

    /// Also true while the program has not initialised the library.
    fn knows_all_memory(&self) -> bool {
        self.drivers().iter().all(|driver| driver.knows_other_contexts)
    }

    unsafe fn copy(&self, way: CopyDirection, here: u64, there: u64, bytes: usize) -> c_int {
        let drivers = &mut self.drivers();
        let Some((driver, _, device)) = self.find(drivers, there) else { return UNINITIALIZED };
        let (to, from) = way.ends(here, there);
        self.list(driver, device).map_or_else(
            |code| code,
            // SAFETY: the caller's promise; no events.
            |list| unsafe {
                let (copy, none) = (self.call.zeCommandListAppendMemoryCopy, ptr::null_mut());
                copy(list, to, from, bytes, none, 0, ptr::null_mut())
            },
        )
    }
}

impl LevelZero {
    /// Returns the drivers. The first call after the program's initialisation finds them.
    fn drivers(&self) -> MutexGuard<'_, Vec<Driver>> {
        let mut drivers = self.drivers.lock();
        if drivers.is_empty() {
            // SAFETY: places for as many handles as are named.
            let all = handles(|count, places| unsafe { (self.call.zeDriverGet)(count, places) });
            *drivers = all.into_iter().map(|driver| self.open(driver)).collect();
        }
        drivers
    }

    fn open(&self, driver: GpuHandle) -> Driver {
        let context = self.new_context(driver).unwrap_or(ptr::null_mut());
        let knows_other_contexts =
            !context.is_null() && self.knows_memory_of_another(context, driver);
        Driver { driver, context, knows_other_contexts, lists: Vec::new() }
    }

    fn new_context(&self, driver: GpuHandle) -> Result<GpuHandle, c_int> {
        let wanted = description(CONTEXT_DESC);
        // SAFETY: a driver of the library, a description, and a place for the answer.
        made(|context| unsafe { (self.call.zeContextCreate)(driver, &wanted, context) })
    }

    /// Whether a context knows memory of another context of its driver. Also true where that cannot
    /// be tried out.
    fn knows_memory_of_another(&self, context: GpuHandle, driver: GpuHandle) -> bool {
        const BYTES: usize = 64;
        let Ok(other) = self.new_context(driver) else { return true };
        let (wanted, mut address) = (description(HOST_MEM_ALLOC_DESC), 0);
        let mut knows = true;
        // SAFETY: a context that was made above, a description, and a place for the answer; memory
        // and context are not used any more when they are freed.
        unsafe {
            if (self.call.zeMemAllocHost)(other, &wanted, BYTES, BYTES, &mut address) == SUCCESS {
                knows = self.properties(context, address).is_some();
                (self.call.zeMemFree)(other, address);
            }
            (self.call.zeContextDestroy)(other);
        }
        knows
    }

    /// Returns what a context knows of memory: its type and its device.
    fn properties(&self, context: GpuHandle, address: u64) -> Option<(u32, GpuHandle)> {
        let (stype, next) = (MEMORY_ALLOCATION_PROPERTIES, ptr::null());
        let mut found = Properties { stype, next, memory_type: UNKNOWN, id: 0, page_bytes: 0 };
        let mut device = ptr::null_mut();
        let get = self.call.zeMemGetAllocProperties;
        // SAFETY: a context of the library, and places for the answers.
        let is_known = !context.is_null()
            && unsafe { get(context, address, &mut found, &mut device) } == SUCCESS
            && found.memory_type != UNKNOWN;
        is_known.then_some((found.memory_type, device))
    }

    /// Returns the driver that knows memory, the type of the memory, and its device: shared memory
    /// may belong to none.
    fn find<'a>(
        &self,
        drivers: &'a mut [Driver],
        address: u64,
    ) -> Option<(&'a mut Driver, u32, GpuHandle)> {
        drivers.iter_mut().find_map(|driver| {
            let (memory_type, device) = self.properties(driver.context, address)?;
            Some((driver, memory_type, device))
        })
    }

    /// Returns the command list of a device, or of the first one if there is none. Makes it at the
    /// first call.
    fn list(&self, driver: &mut Driver, device: GpuHandle) -> Result<GpuHandle, c_int> {
        if let Some((_, list)) = driver.lists.iter().find(|(of, _)| ptr::eq(*of, device)) {
            return Ok(*list);
        }
        let get = self.call.zeDeviceGet;
        // SAFETY: a driver of the library, and places for as many handles as are named.
        let all = || handles(|count, places| unsafe { get(driver.driver, count, places) });
        let first = || all().first().copied().unwrap_or(ptr::null_mut());
        let by = if device.is_null() { first() } else { device };
        let numbers = [0, 0, 0, SYNCHRONOUS, 0];
        let wanted = Description { numbers, ..description(COMMAND_QUEUE_DESC) };
        let create = self.call.zeCommandListCreateImmediate;
        // SAFETY: a context and a device of the library, a description, a place for the answer.
        let list = made(|list| unsafe { create(driver.context, by, &wanted, list) })?;
        driver.lists.push((device, list));
        Ok(list)
    }
}

/// Returns the handle that a function stores.
fn made(make: impl FnOnce(*mut GpuHandle) -> c_int) -> Result<GpuHandle, c_int> {
    let mut handle = ptr::null_mut();
    match make(&mut handle) {
        SUCCESS => Ok(handle),
        code => Err(code),
    }
}

/// Returns the handles that a function stores, which first says how many there are.
fn handles(get: impl Fn(*mut u32, *mut GpuHandle) -> c_int) -> Vec<GpuHandle> {
    let mut count = 0;
    get(&mut count, ptr::null_mut());
    let mut all = vec![ptr::null_mut(); count as usize];
    let code = get(&mut count, all.as_mut_ptr());
    all.truncate(if code == SUCCESS { count as usize } else { 0 });
    all
}
