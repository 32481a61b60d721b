//! The functions of libibverbs by name. Invariant: a library that was opened stays, so that its
//! functions are valid for ever.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;

use super::types::*;

/// Declares [`Library`] from the names of functions, and how to find them.
macro_rules! functions {
    ($($field:ident $name:literal ($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions that this library calls.
        pub struct Library {
            $(#[doc = $name] pub $field: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
            /// `_ibv_query_gid_ex`, which came later
            pub query_gid_ex: Option<QueryGidEx>,
        }

        impl Library {
            fn find(handle: *mut c_void) -> Result<Library, String> {
                Ok(Library {
                    $($field: {
                        let found = symbol(handle, concat!($name, "\0"))
                            .ok_or(concat!("libibverbs has no ", $name))?;
                        // SAFETY: the function of this name has this type.
                        unsafe {
                            core::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $answer)?,
                            >(found)
                        }
                    },)*
                    query_gid_ex: symbol(handle, "_ibv_query_gid_ex\0").map(|found| {
                        // SAFETY: likewise.
                        unsafe { core::mem::transmute::<*mut c_void, QueryGidEx>(found) }
                    }),
                })
            }
        }
    };
}

type QueryGidEx = unsafe extern "C" fn(*mut Context, u32, u32, *mut GidEntry, u32, usize) -> c_int;

functions! {
    get_device_list "ibv_get_device_list" (*mut c_int) -> *mut *mut Device;
    free_device_list "ibv_free_device_list" (*mut *mut Device);
    open_device "ibv_open_device" (*mut Device) -> *mut Context;
    close_device "ibv_close_device" (*mut Context) -> c_int;
    query_device "ibv_query_device" (*mut Context, *mut DeviceAttributes) -> c_int;
    query_port "ibv_query_port" (*mut Context, u8, *mut PortAttributes) -> c_int;
    query_gid "ibv_query_gid" (*mut Context, u8, c_int, *mut Gid) -> c_int;
    alloc_pd "ibv_alloc_pd" (*mut Context) -> *mut Pd;
    dealloc_pd "ibv_dealloc_pd" (*mut Pd) -> c_int;
    reg_mr "ibv_reg_mr" (*mut Pd, *mut c_void, usize, c_int) -> *mut Mr;
    dereg_mr "ibv_dereg_mr" (*mut Mr) -> c_int;
    create_cq "ibv_create_cq"
        (*mut Context, c_int, *mut c_void, *mut c_void, c_int) -> *mut Cq;
    destroy_cq "ibv_destroy_cq" (*mut Cq) -> c_int;
    create_qp "ibv_create_qp" (*mut Pd, *mut QpInit) -> *mut Qp;
    modify_qp "ibv_modify_qp" (*mut Qp, *mut QpAttributes, c_int) -> c_int;
    destroy_qp "ibv_destroy_qp" (*mut Qp) -> c_int;
    wc_status_str "ibv_wc_status_str" (c_int) -> *const c_char;
    get_async_event "ibv_get_async_event" (*mut Context, *mut AsyncEvent) -> c_int;
    ack_async_event "ibv_ack_async_event" (*mut AsyncEvent);
    fork_init "ibv_fork_init" () -> c_int;
}

/// A function of a library, by its name with a zero at the end.
fn symbol(handle: *mut c_void, name: &str) -> Option<*mut c_void> {
    // SAFETY: the handle is open and the name a C string.
    let found = unsafe { libc::dlsym(handle, name.as_ptr().cast()) };
    (!found.is_null()).then_some(found)
}

/// What the loader said last.
fn loaders_words() -> String {
    // SAFETY: returns null or a C string that lives until the next call of this thread.
    let words = unsafe { libc::dlerror() };
    if words.is_null() {
        return String::from("no reason given");
    }
    // SAFETY: as said.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}

impl Library {
    /// Opens a library for good; the error says what is missing.
    pub fn open(path: &str) -> Result<&'static Library, String> {
        let name = CString::new(path).map_err(|_| format!("{path:?} is no name of a library"))?;
        // SAFETY: loads a library of the user's choice, and runs its constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("cannot load {path}: {}", loaders_words()));
        }
        let library: &'static Library = Box::leak(Box::new(Library::find(handle)?));
        // What a child writes to memory that it shares until then must not move pages away from
        // the device. It refuses if the process has registered memory already; then whoever did
        // that has decided.
        // SAFETY: may be called at any time.
        unsafe { (library.fork_init)() };
        Ok(library)
    }

    /// What the status of a completion means, in the library's words.
    pub fn status(&self, status: c_int) -> String {
        // SAFETY: returns a constant C string for any value.
        let words = unsafe { CStr::from_ptr((self.wc_status_str)(status)) };
        words.to_string_lossy().into_owned()
    }
}
