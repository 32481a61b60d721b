//! The loader of oneAPI Level Zero, libze_loader.so.
//!
//! Level Zero answers where memory is for a context, and memory belongs to one. The contexts of the
//! program cannot be asked for. This library makes one of its own for each driver, as MPICH and
//! Open MPI do, and also asks the driver's default context, if the loader knows such. The driver of
//! Intel finds memory of any context of the same driver, although the specification allows
//! ZE_MEMORY_TYPE_UNKNOWN for that of another one. Whether it does is tried out once, with memory
//! of a second context ([`LevelZero::knows_other_contexts`]).

use super::gpu_calls::{CopyDirection, MemoryKind, SUCCESS, function};
use crate::dl::Library;
use core::ffi::{c_int, c_void};
use core::ptr;
use parking_lot::Mutex;

type Handle = *mut c_void;

/// The begin of all descriptions and properties.
#[repr(C)]
struct Begin {
    stype: u32,
    next: *const c_void,
}

impl Begin {
    const fn of(stype: u32) -> Begin {
        Begin { stype, next: ptr::null() }
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

/// `ze_context_desc_t`, `ze_host_mem_alloc_desc_t`.
#[repr(C)]
struct FlagsDesc {
    begin: Begin,
    flags: u32,
}

/// `ze_command_queue_desc_t`.
#[repr(C)]
struct QueueDesc {
    begin: Begin,
    ordinal: u32,
    index: u32,
    flags: u32,
    mode: u32,
    priority: u32,
}

/// `ze_memory_allocation_properties_t`.
#[repr(C)]
struct Properties {
    begin: Begin,
    memory_type: u32,
    id: u64,
    page_bytes: u64,
}

type GetHandles = unsafe extern "C" fn(*mut u32, *mut Handle) -> c_int;
type GetHandlesOf = unsafe extern "C" fn(Handle, *mut u32, *mut Handle) -> c_int;
type CreateContext = unsafe extern "C" fn(Handle, *const FlagsDesc, *mut Handle) -> c_int;
type DestroyContext = unsafe extern "C" fn(Handle) -> c_int;
type DefaultContext = unsafe extern "C" fn(Handle) -> Handle;
type GetProperties = unsafe extern "C" fn(Handle, u64, *mut Properties, *mut Handle) -> c_int;
type CreateList = unsafe extern "C" fn(Handle, Handle, *const QueueDesc, *mut Handle) -> c_int;
type Copy = unsafe extern "C" fn(Handle, u64, u64, usize, Handle, u32, *mut Handle) -> c_int;
type AllocateHost = unsafe extern "C" fn(Handle, *const FlagsDesc, usize, usize, *mut u64) -> c_int;
type Free = unsafe extern "C" fn(Handle, u64) -> c_int;

/// The functions of the library, and what was made with them.
pub struct LevelZero {
    get_drivers: GetHandles,
    get_devices: GetHandlesOf,
    create_context: CreateContext,
    destroy_context: Option<DestroyContext>,
    default_context: Option<DefaultContext>,
    get_properties: GetProperties,
    create_list: CreateList,
    append_copy: Copy,
    allocate_host: Option<AllocateHost>,
    free: Option<Free>,
    /// `None`: the program has not initialised the library yet
    opened: Mutex<Option<Opened>>,
}

/// What was made for the drivers.
struct Opened {
    contexts: Vec<Context>,
    knows_other_contexts: bool,
    lists: Vec<CopyList>,
}

/// A context to ask.
#[derive(Clone, Copy)]
struct Context {
    context: Handle,
    driver: Handle,
}

/// An immediate command list, by which a device copies.
struct CopyList {
    context: Handle,
    device: Handle,
    list: Handle,
}

// SAFETY: handles may be used from any thread; the mutex keeps threads apart that use one list.
unsafe impl Send for Opened {}

impl LevelZero {
    /// Returns the functions; `None` if one is missing.
    pub fn of(library: Library) -> Option<LevelZero> {
        // SAFETY: the prototypes of ze_api.h; ze_result_t is an int.
        unsafe {
            Some(LevelZero {
                get_drivers: function(library, c"zeDriverGet")?,
                get_devices: function(library, c"zeDeviceGet")?,
                create_context: function(library, c"zeContextCreate")?,
                destroy_context: function(library, c"zeContextDestroy"),
                default_context: function(library, c"zeDriverGetDefaultContext"),
                get_properties: function(library, c"zeMemGetAllocProperties")?,
                create_list: function(library, c"zeCommandListCreateImmediate")?,
                append_copy: function(library, c"zeCommandListAppendMemoryCopy")?,
                allocate_host: function(library, c"zeMemAllocHost"),
                free: function(library, c"zeMemFree"),
                opened: Mutex::new(None),
            })
        }
    }

    /// Whether it is known of memory of all contexts where it is. Also true while the program has
    /// not initialised the library.
    pub fn knows_other_contexts(&self) -> bool {
        self.with(|opened| opened.knows_other_contexts).unwrap_or(true)
    }

    /// Returns where memory is.
    pub fn kind(&self, address: u64) -> MemoryKind {
        match self.with(|opened| self.find(opened, address)).flatten() {
            None => MemoryKind::Host,
            Some((_, HOST, _)) => MemoryKind::Pinned,
            Some(_) => MemoryKind::Device,
        }
    }

    /// Copies memory. Returns the code of an error, or 0.
    ///
    /// # Safety
    /// As for `Runtime::copy`.
    pub unsafe fn copy(&self, way: CopyDirection, here: u64, there: u64, bytes: usize) -> c_int {
        let copied = self.with(|opened| {
            let (context, _, device) = self.find(opened, there).ok_or(UNINITIALIZED)?;
            let list = self.list(opened, context, device)?;
            let (to, from) = match way {
                CopyDirection::ToHost => (here, there),
                CopyDirection::ToDevice => (there, here),
            };
            let none = ptr::null_mut();
            // SAFETY: the caller's promise; no events.
            Ok(unsafe { (self.append_copy)(list, to, from, bytes, none, 0, ptr::null_mut()) })
        });
        match copied {
            Some(Ok(code) | Err(code)) => code,
            None => UNINITIALIZED,
        }
    }

    /// Does `work` with what was made for the drivers; makes it at the first call after the
    /// program's initialisation.
    fn with<R>(&self, work: impl FnOnce(&mut Opened) -> R) -> Option<R> {
        let mut opened = self.opened.lock();
        if opened.is_none() {
            *opened = self.open();
        }
        opened.as_mut().map(work)
    }

    /// Makes a context for each driver. `None`: the program has not initialised the library.
    fn open(&self) -> Option<Opened> {
        // SAFETY: places for as many handles as are named.
        let drivers = handles(|count, places| unsafe { (self.get_drivers)(count, places) });
        if drivers.is_empty() {
            return None;
        }
        let (mut contexts, mut knows_other_contexts) = (Vec::new(), true);
        for driver in drivers {
            let Some(own) = self.new_context(driver) else {
                knows_other_contexts = false;
                continue;
            };
            contexts.push(Context { context: own, driver });
            // SAFETY: a driver of the library.
            let default = self.default_context.map(|get| unsafe { get(driver) });
            if let Some(context) = default.filter(|context| !context.is_null()) {
                contexts.push(Context { context, driver });
            }
            knows_other_contexts &= self.knows_memory_of_another(own, driver);
        }
        Some(Opened { contexts, knows_other_contexts, lists: Vec::new() })
    }

    fn new_context(&self, driver: Handle) -> Option<Handle> {
        let wanted = FlagsDesc { begin: Begin::of(CONTEXT_DESC), flags: 0 };
        let mut context = ptr::null_mut();
        // SAFETY: a driver of the library, a description, and a place for the answer.
        let code = unsafe { (self.create_context)(driver, &wanted, &mut context) };
        (code == SUCCESS).then_some(context)
    }

    /// Whether a context knows memory of another context of its driver. Also true where that cannot
    /// be tried out.
    fn knows_memory_of_another(&self, context: Handle, driver: Handle) -> bool {
        const BYTES: usize = 64;
        let (Some(allocate), Some(free)) = (self.allocate_host, self.free) else { return true };
        let Some(other) = self.new_context(driver) else { return true };
        let wanted = FlagsDesc { begin: Begin::of(HOST_MEM_ALLOC_DESC), flags: 0 };
        let mut address = 0;
        let mut knows = true;
        // SAFETY: a context that was made above, a description, and a place for the answer.
        if unsafe { allocate(other, &wanted, BYTES, BYTES, &mut address) } == SUCCESS {
            knows = self.properties(context, address).is_some();
            // SAFETY: allocated above.
            unsafe { free(other, address) };
        }
        if let Some(destroy) = self.destroy_context {
            // SAFETY: made above, and not used any more.
            unsafe { destroy(other) };
        }
        knows
    }

    /// Returns what a context knows of memory: its type and its device.
    fn properties(&self, context: Handle, address: u64) -> Option<(u32, Handle)> {
        let begin = Begin::of(MEMORY_ALLOCATION_PROPERTIES);
        let mut found = Properties { begin, memory_type: UNKNOWN, id: 0, page_bytes: 0 };
        let mut device = ptr::null_mut();
        // SAFETY: a context of the library, and places for the answers.
        let code = unsafe { (self.get_properties)(context, address, &mut found, &mut device) };
        (code == SUCCESS && found.memory_type != UNKNOWN).then_some((found.memory_type, device))
    }

    /// Returns the context that knows memory, the type of the memory, and a device that can copy
    /// it.
    fn find(&self, opened: &Opened, address: u64) -> Option<(Handle, u32, Handle)> {
        opened.contexts.iter().find_map(|asked| {
            let (memory_type, device) = self.properties(asked.context, address)?;
            // Shared memory may belong to no device.
            let device = if device.is_null() { self.first_device(asked.driver) } else { device };
            Some((asked.context, memory_type, device))
        })
    }

    fn first_device(&self, driver: Handle) -> Handle {
        // SAFETY: a driver of the library, and places for as many handles as are named.
        let all = handles(|count, places| unsafe { (self.get_devices)(driver, count, places) });
        all.first().copied().unwrap_or(ptr::null_mut())
    }

    /// Returns the command list of a device, and makes it at the first call.
    fn list(&self, opened: &mut Opened, context: Handle, device: Handle) -> Result<Handle, c_int> {
        let is_it = |one: &&CopyList| (one.context, one.device) == (context, device);
        if let Some(found) = opened.lists.iter().find(is_it) {
            return Ok(found.list);
        }
        let wanted = QueueDesc {
            begin: Begin::of(COMMAND_QUEUE_DESC),
            ordinal: 0,
            index: 0,
            flags: 0,
            mode: SYNCHRONOUS,
            priority: 0,
        };
        let mut list = ptr::null_mut();
        // SAFETY: a context and a device of the library, a description, a place for the answer.
        match unsafe { (self.create_list)(context, device, &wanted, &mut list) } {
            SUCCESS => {
                opened.lists.push(CopyList { context, device, list });
                Ok(list)
            }
            code => Err(code),
        }
    }
}

/// Returns the handles that a function stores, which first says how many there are.
fn handles(get: impl Fn(*mut u32, *mut Handle) -> c_int) -> Vec<Handle> {
    let mut count = 0;
    if get(&mut count, ptr::null_mut()) != SUCCESS {
        return Vec::new();
    }
    let mut all = vec![ptr::null_mut(); count as usize];
    if get(&mut count, all.as_mut_ptr()) != SUCCESS {
        return Vec::new();
    }
    all.truncate(count as usize);
    all
}
