//! The functions of libibverbs by name. Invariant: a library that was opened is never closed, so
//! that its functions stay valid.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;

use super::functions;
use super::verbs::*;

/// Declares [`Library`] from the prototypes of functions, and how to find them.
macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions that this library calls.
        pub struct Library {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                pub $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,
            )*
            /// `_ibv_query_gid_ex`, which came later
            pub _ibv_query_gid_ex: Option<QueryGidEx>,
            /// `ibv_is_fork_initialized`, which came later (35)
            pub ibv_is_fork_initialized: Option<IsForkInitialized>,
            /// whether children of fork(2) get copies of registered pages without any call, as
            /// they do from Linux 5.12 on
            pub kernel_copies_at_forks: bool,
        }

        // Each prototype is the one in the header. A constant that nothing uses names no symbol in
        // the library that is built.
        $(const _: unsafe extern "C" fn($($argument),*) $(-> $answer)? = functions::$name;)*

        impl Library {
            fn find(handle: *mut c_void) -> Result<Library, String> {
                Ok(Library {
                    $($name: {
                        let found = symbol(handle, concat!(stringify!($name), "\0"))
                            .ok_or(concat!("libibverbs has no ", stringify!($name)))?;
                        // SAFETY: the function of this name has this type.
                        unsafe {
                            core::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $answer)?,
                            >(found)
                        }
                    },)*
                    _ibv_query_gid_ex: symbol(handle, "_ibv_query_gid_ex\0").map(|found| {
                        // SAFETY: the function of this name has this type.
                        unsafe { core::mem::transmute::<*mut c_void, QueryGidEx>(found) }
                    }),
                    ibv_is_fork_initialized: symbol(handle, "ibv_is_fork_initialized\0").map(
                        // SAFETY: the function of this name has this type.
                        |found| unsafe {
                            core::mem::transmute::<*mut c_void, IsForkInitialized>(found)
                        },
                    ),
                    kernel_copies_at_forks: false,
                })
            }
        }
    };
}

type QueryGidEx =
    unsafe extern "C" fn(*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32, usize) -> c_int;
const _: QueryGidEx = functions::_ibv_query_gid_ex;
type IsForkInitialized = unsafe extern "C" fn() -> ibv_fork_status;
const _: IsForkInitialized = functions::ibv_is_fork_initialized;

functions! {
    ibv_get_device_list(*mut c_int) -> *mut *mut ibv_device;
    ibv_free_device_list(*mut *mut ibv_device);
    ibv_open_device(*mut ibv_device) -> *mut ibv_context;
    ibv_close_device(*mut ibv_context) -> c_int;
    ibv_query_device(*mut ibv_context, *mut ibv_device_attr) -> c_int;
    ibv_query_port(*mut ibv_context, u8, *mut _compat_ibv_port_attr) -> c_int;
    ibv_query_gid(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int;
    ibv_alloc_pd(*mut ibv_context) -> *mut ibv_pd;
    ibv_dealloc_pd(*mut ibv_pd) -> c_int;
    ibv_reg_mr(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
    ibv_dereg_mr(*mut ibv_mr) -> c_int;
    ibv_create_cq
        (*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
    ibv_destroy_cq(*mut ibv_cq) -> c_int;
    ibv_create_qp(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_modify_qp(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
    ibv_destroy_qp(*mut ibv_qp) -> c_int;
    ibv_wc_status_str(ibv_wc_status) -> *const c_char;
    ibv_get_async_event(*mut ibv_context, *mut ibv_async_event) -> c_int;
    ibv_ack_async_event(*mut ibv_async_event);
    ibv_fork_init() -> c_int;
}

/// Looks up a function of a library; the name ends with a zero.
fn symbol(handle: *mut c_void, name: &str) -> Option<*mut c_void> {
    // SAFETY: the handle is open and the name a C string.
    let found = unsafe { libc::dlsym(handle, name.as_ptr().cast()) };
    (!found.is_null()).then_some(found)
}

/// The last error message of the loader.
fn loaders_message() -> String {
    // SAFETY: returns null or a C string that lives until the next call of this thread.
    let words = unsafe { libc::dlerror() };
    if words.is_null() {
        return String::from("no reason given");
    }
    // SAFETY: not null, as checked.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}

impl Library {
    /// Opens a library and never closes it; the error says what is missing.
    pub fn open(path: &str) -> Result<&'static Library, String> {
        let name = CString::new(path).map_err(|_| format!("{path:?} is no name of a library"))?;
        // SAFETY: loads a library of the user's choice, and runs its constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("cannot load {path}: {}", loaders_message()));
        }
        let mut library = Library::find(handle)?;
        library.keep_pages_at_forks();
        Ok(Box::leak(Box::new(library)))
    }

    /// Keeps registered pages with this process when it forks. Where the kernel does not,
    /// libibverbs takes them away from children.
    fn keep_pages_at_forks(&mut self) {
        // SAFETY: may be called at any time.
        let status = self.ibv_is_fork_initialized.map(|status| unsafe { status() });
        self.kernel_copies_at_forks = status == Some(IBV_FORK_UNNEEDED);
        if !self.kernel_copies_at_forks {
            // The call fails if the process has registered memory already; then the part of the
            // program that did so has decided.
            // SAFETY: may be called at any time.
            unsafe { (self.ibv_fork_init)() };
        }
    }

    /// The library's text for the status of a completion.
    pub fn status(&self, status: ibv_wc_status) -> String {
        // SAFETY: returns a constant C string for any value.
        let words = unsafe { CStr::from_ptr((self.ibv_wc_status_str)(status)) };
        words.to_string_lossy().into_owned()
    }
}
