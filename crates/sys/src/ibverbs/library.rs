//! The functions of libibverbs by name. Invariant: a library that was opened is never closed, so
//! that its functions stay valid.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ops::Deref;
use std::ffi::CString;

use super::functions;
use super::verbs::*;
use crate::dl::{self, c_functions};

c_functions! {
    /// The functions that this library calls.
    Functions as functions {
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
}

c_functions! {
    /// A function that came later.
    GidQuery as functions {
        _ibv_query_gid_ex(*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32, usize) -> c_int;
    }
}

c_functions! {
    /// A function that came later (35).
    ForkQuery as functions {
        ibv_is_fork_initialized() -> ibv_fork_status;
    }
}

/// The functions that were found.
pub struct Library {
    /// those that every version has
    pub functions: Functions,
    /// whether the type of an address can be asked for
    pub gid_query: Option<GidQuery>,
    /// whether children of fork(2) get copies of registered pages without any call, as they do from
    /// Linux 5.12 on
    pub kernel_copies_at_forks: bool,
}

impl Deref for Library {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}

impl Library {
    /// Opens a library and never closes it; the error says what is missing.
    pub fn open(path: &str) -> Result<&'static Library, String> {
        let name = CString::new(path).map_err(|_| format!("{path:?} is no name of a library"))?;
        let library =
            dl::Library::load(&name).map_err(|message| format!("cannot load {path}: {message}"))?;
        let functions =
            Functions::of(library).map_err(|name| format!("libibverbs has no {name}"))?;
        // SAFETY: may be called at any time.
        let status = |query: ForkQuery| unsafe { (query.ibv_is_fork_initialized)() };
        let kernel_copies_at_forks =
            ForkQuery::of(library).is_ok_and(|query| status(query) == IBV_FORK_UNNEEDED);
        if !kernel_copies_at_forks {
            // Where the kernel does not keep registered pages with this process when it forks,
            // libibverbs takes them away from children. The call fails if the process has
            // registered memory already; then the part of the program that did so has decided.
            // SAFETY: may be called at any time.
            unsafe { (functions.ibv_fork_init)() };
        }
        let gid_query = GidQuery::of(library).ok();
        Ok(Box::leak(Box::new(Library { functions, gid_query, kernel_copies_at_forks })))
    }

    /// The library's text for the status of a completion.
    pub fn status(&self, status: ibv_wc_status) -> String {
        // SAFETY: returns a constant C string for any value.
        let words = unsafe { CStr::from_ptr((self.ibv_wc_status_str)(status)) };
        words.to_string_lossy().into_owned()
    }
}
