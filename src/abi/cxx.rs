//! Entries by which the C++ bindings of MPICH and of Open MPI 4 declare that a callback of a window
//! is a C++ function. The bindings bypass the C interface here, and would create or change objects
//! that libfompi does not know. MPI-3.0 removed the bindings from the standard, but programs still
//! use them.

use super::errhandler::{self, Function};
use super::{MPI_Errhandler, keyvals};
use crate::config::Config;
use crate::mpi::Host;
use crate::mpi::attributes::{Calling, Delete};
use crate::sys::dl;
use core::ffi::{c_int, c_void};
use core::mem::transmute;

/// MPICH: declares that an error handler of any kind of object is a C++ function, and which
/// function calls it. Recorded if the handler is for windows; always passed on to the host MPI,
/// because handlers of communicators are declared in this way, too. Raises no error.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPII_Errhandler_set_cxx(
    handler: MPI_Errhandler,
    caller: *mut c_void,
) {
    pass_through!(MPII_Errhandler_set_cxx(handler: MPI_Errhandler, caller: *mut c_void));
    type Inner = unsafe extern "C-unwind" fn(usize, *mut c_void);
    let host = Host::get();
    errhandler::set_caller(host.handle(handler), caller.addr());
    // SAFETY: the function of that name has this type.
    let inner: Option<Inner> = unsafe { host.extra(c"MPII_Errhandler_set_cxx") };
    if let Some(inner) = inner {
        // SAFETY: the caller's arguments, passed on unchanged.
        unsafe { inner(host.handle(handler), caller) };
    }
}

/// Open MPI: creates an error handler of windows for C++. Open MPI's own function creates it;
/// libfompi records the function and its caller, because it must be called with libfompi's window
/// handle. Returns 0 if the bindings are not loaded.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_cxx_errhandler_create_win(
    function: *mut c_void,
) -> MPI_Errhandler {
    pass_through!(ompi_cxx_errhandler_create_win(function: *mut c_void) -> MPI_Errhandler);
    type Inner = unsafe extern "C-unwind" fn(*mut c_void) -> MPI_Errhandler;
    let inner = dl::next_symbol(c"ompi_cxx_errhandler_create_win");
    let caller = dl::global_symbol(c"ompi_mpi_cxx_win_errhandler_invoke");
    if inner == 0 {
        return 0;
    }
    // SAFETY: the function of that name has this type.
    let inner: Inner = unsafe { transmute(inner) };
    // SAFETY: the caller's argument.
    let handler = unsafe { inner(function) };
    let made = Function::OpenMpiCxx { caller, function: function.addr() };
    errhandler::record(handler, made);
    handler
}

/// Open MPI: creates a keyval of windows for C++, like MPI_Win_create_keyval. The callbacks are
/// functions of the bindings and are called as C functions. Passed on with FOMPI_DISABLE. Errors:
/// those of MPI_Win_create_keyval.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_cxx_attr_create_keyval_win(
    copy: *mut c_void,
    delete: *mut c_void,
    keyval: *mut c_int,
    extra: *mut c_void,
    flags: c_int,
    state: *mut c_void,
) -> c_int {
    pass_through!(ompi_cxx_attr_create_keyval_win(
        copy: *mut c_void, delete: *mut c_void, keyval: *mut c_int, extra: *mut c_void,
        flags: c_int, state: *mut c_void
    ) -> c_int);
    type Inner = unsafe extern "C-unwind" fn(
        *mut c_void,
        *mut c_void,
        *mut c_int,
        *mut c_void,
        c_int,
        *mut c_void,
    ) -> c_int;
    let inner = dl::next_symbol(c"ompi_cxx_attr_create_keyval_win");
    if Config::get().disable && inner != 0 {
        // SAFETY: the function of that name has this type.
        let inner: Inner = unsafe { transmute(inner) };
        // SAFETY: the caller's arguments.
        return unsafe { inner(copy, delete, keyval, extra, flags, state) };
    }
    let (function, extra) = (delete.addr(), extra.addr());
    // SAFETY: the caller's pointer.
    unsafe { keyvals::create(Host::get(), Delete { function, extra, calling: Calling::C }, keyval) }
}
