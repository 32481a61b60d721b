//! Entries that only some MPIs have: the inner functions of MPICH's Fortran bindings, and its error
//! handlers with extra state. Without these entries the MPIs would get libfompi's handles, which
//! they do not know. Calls on windows of the host MPI are passed on.

use super::answer::{check_output, on_any_window, raise_alone};
use super::keyvals::KIND_POINTER;
use super::{MPI_Errhandler, MPI_Win};
use super::{errhandler, keyvals};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::messages;
use crate::mpi::Host;
use crate::mpi::attributes::{Calling, Language, set_calling};
use crate::mpi::comm::check;
use crate::mpi::host::Abi;
use crate::window::Window;
use core::ffi::{c_int, c_void};

/// Returns an attribute in the form that the binding needs. In the MPICH ABI a predefined Fortran
/// keyval is the C keyval plus one, and denotes the value itself; elsewhere, and for keyvals of the
/// program, `kind` gives the caller's language.
fn find(host: &Host, window: &'static Window, keyval: c_int, kind: c_int) -> Result<Option<usize>> {
    if host.abi == Abi::Mpich {
        let plus_one = keyvals::predefined(host, &window.facts, keyval - 1);
        if let Some(value) = plus_one {
            return Ok(Some(value.integer().cast_unsigned()));
        }
        if let Some(value) = keyvals::predefined(host, &window.facts, keyval) {
            return Ok(Some(value.pointer()));
        }
    }
    let found = keyvals::find(host, window, keyval)?;
    Ok(found.map(|value| match kind {
        KIND_POINTER => value.pointer(),
        _ => value.integer().cast_unsigned(),
    }))
}

/// MPICH: returns an attribute of a window to its Fortran bindings, as MPI_Win_get_attr does. A
/// call on a window of the host MPI is passed on. Errors: those of MPI_Win_get_attr.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPII_Win_get_attr(
    win: MPI_Win,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
    kind: c_int,
) -> c_int {
    pass_through!(MPII_Win_get_attr(
        win: MPI_Win, keyval: c_int, value: *mut c_void, flag: *mut c_int, kind: c_int
    ) -> c_int);
    let host = Host::get();
    let ours = |window: &'static Window| {
        let found = find(host, window, keyval, kind)?;
        // SAFETY: the binding's pointer.
        unsafe { flag.write(c_int::from(found.is_some())) };
        if let Some(found) = found {
            // SAFETY: the binding's pointer to a pointer.
            unsafe { value.cast::<usize>().write_unaligned(found) };
        }
        Ok(())
    };
    let call = "MPI_Win_get_attr";
    on_any_window(call, host, win, ours, |native| match host.call.win_get_attr_of_kind {
        // SAFETY: the caller's arguments, passed on unchanged.
        Some(inner) => check(unsafe { inner(native, keyval, value, flag, kind) }),
        None => Err(Error::Wrong(&messages::NO_FUNCTION)),
    })
}

/// MPICH: sets an attribute of a window for its Fortran bindings, as MPI_Win_set_attr does. Errors:
/// those of MPI_Win_set_attr.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPII_Win_set_attr(
    win: MPI_Win,
    keyval: c_int,
    value: *mut c_void,
    kind: c_int,
) -> c_int {
    pass_through!(MPII_Win_set_attr(
        win: MPI_Win, keyval: c_int, value: *mut c_void, kind: c_int
    ) -> c_int);
    let host = Host::get();
    let language = if kind == KIND_POINTER { Language::C } else { Language::Fortran };
    let ours = |window| keyvals::set(host, window, keyval, value.addr().cast_signed(), language);
    let call = "MPI_Win_set_attr";
    on_any_window(call, host, win, ours, |native| match host.call.win_set_attr_of_kind {
        // SAFETY: the caller's arguments, passed on unchanged.
        Some(inner) => check(unsafe { inner(native, keyval, value, kind) }),
        None => Err(Error::Wrong(&messages::NO_FUNCTION)),
    })
}

/// MPICH: declares which function of its Fortran or C++ bindings calls the callbacks of a keyval,
/// of any kind of object. Recorded if the keyval is for windows, otherwise passed on. Raises no
/// error.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPII_Keyval_set_proxy(
    keyval: c_int,
    copy: *mut c_void,
    delete: *mut c_void,
) {
    pass_through!(MPII_Keyval_set_proxy(
        keyval: c_int, copy: *mut c_void, delete: *mut c_void
    ));
    type Inner = unsafe extern "C-unwind" fn(c_int, *mut c_void, *mut c_void);
    if set_calling(keyval, Calling::Proxy(delete.addr())) {
        return;
    }
    // SAFETY: the function of that name has this type.
    let inner: Option<Inner> = unsafe { Host::get().extra(c"MPII_Keyval_set_proxy") };
    if let Some(inner) = inner {
        // SAFETY: the caller's arguments, passed on unchanged.
        unsafe { inner(keyval, copy, delete) };
    }
}

/// Checks the arguments of MPIX_Win_create_errhandler_x if the host MPI does not have it.
fn may_make(
    function: *mut c_void,
    destructor: *mut c_void,
    errhandler: *mut MPI_Errhandler,
) -> Result<()> {
    if Config::get().disable {
        return Err(Error::Wrong(&messages::NO_FUNCTION));
    }
    check_output(function)?;
    check_output(destructor)?;
    check_output(errhandler)
}

/// The function that the host MPI gets for a handler; it has no window with that handler.
extern "C" fn never_called(_: *mut usize, _: *mut c_int) {}

entry! {
    /// Creates an error handler that gets the window handle by value, and extra state (MPICH 5).
    /// The host MPI creates the object; libfompi records function and state, and calls `destructor`
    /// if that MPI has no such function. Errors: MPI_ERR_ARG for a null pointer, those of the host
    /// MPI, MPI_ERR_UNSUPPORTED_OPERATION if that MPI has no such function and FOMPI_DISABLE is
    /// set.
    MPIX_Win_create_errhandler_x PMPIX_Win_create_errhandler_x (
        function: *mut c_void, destructor: *mut c_void, extra: *mut c_void,
        errhandler: *mut MPI_Errhandler,
    ) {
        let host = Host::get();
        let (code, destructor) = match host.call.win_create_errhandler_x {
            Some(inner) => {
                // SAFETY: the caller's arguments, passed on unchanged.
                (unsafe { inner(function, destructor, extra, errhandler) }, None)
            }
            None => {
                if let Err(error) = may_make(function, destructor, errhandler) {
                    return raise_alone("MPIX_Win_create_errhandler_x", host, error);
                }
                let never = (never_called as *const c_void).cast_mut();
                // SAFETY: a function, and the caller's pointer to a handle.
                let code = unsafe { (host.call.win_create_errhandler)(never, errhandler) };
                (code, Some((destructor.addr(), extra.addr())))
            }
        };
        if code == 0 {
            // SAFETY: the handle that was just stored.
            let handler = unsafe { host.fetch(errhandler) };
            let function = errhandler::Function::Extended(function.addr(), extra.addr());
            errhandler::record_with_destructor(handler, function, destructor);
        }
        code
    }
}
