//! The entries by which the C++ bindings of MPICH and of Open MPI 4 say that a callback of a window
//! is a function of C++: those bypass C, and would make or change objects that the library knows
//! nothing of. The bindings were removed from the standard with MPI-3.0; programs have them still.

use super::errhandler::{self, Function};
use super::{MPI_Errhandler, attributes};
use crate::config::Config;
use crate::mpi::Host;
use crate::sys::dl;
use crate::window::attributes::{Calling, Delete};
use core::ffi::{c_int, c_void};
use core::mem::transmute;

/// MPICH's way to say that an error handler of any kind of object is a function of C++, and who
/// calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPII_Errhandler_set_cxx(
    handler: MPI_Errhandler,
    caller: *mut c_void,
) {
    pass_aside!(MPII_Errhandler_set_cxx(handler: MPI_Errhandler, caller: *mut c_void));
    type Inner = unsafe extern "C-unwind" fn(usize, *mut c_void);
    let host = Host::get();
    errhandler::is_called_by(host.handle(handler), caller.addr());
    // SAFETY: the function of that name has this type.
    let inner: Option<Inner> = unsafe { host.extra(c"MPII_Errhandler_set_cxx") };
    if let Some(inner) = inner {
        // SAFETY: the caller's arguments: handlers of communicators are called by it, too.
        unsafe { inner(host.handle(handler), caller) };
    }
}

/// Open MPI's way to make an error handler of windows for C++. 0 if its bindings are not there.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_cxx_errhandler_create_win(
    function: *mut c_void,
) -> MPI_Errhandler {
    pass_aside!(ompi_cxx_errhandler_create_win(function: *mut c_void) -> MPI_Errhandler);
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
    errhandler::note(handler, made);
    handler
}

/// Open MPI's way to make a keyval of windows for C++. The callbacks are functions of the bindings,
/// called as those of C.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_cxx_attr_create_keyval_win(
    copy: *mut c_void,
    delete: *mut c_void,
    keyval: *mut c_int,
    extra: *mut c_void,
    flags: c_int,
    state: *mut c_void,
) -> c_int {
    pass_aside!(ompi_cxx_attr_create_keyval_win(
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
    unsafe {
        attributes::create(Host::get(), Delete { function, extra, calling: Calling::C }, keyval)
    }
}
