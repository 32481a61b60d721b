//! Error handlers of windows (MPI-4.1 §9.3.2); the calls on them are in `errhandler_calls`. A
//! handler is an object of the host MPI, which frees and converts it. libfompi records its
//! function, because it must be called with libfompi's window handle. That handle is one integer in
//! C and in Fortran, in memory that is large enough for either, so one calling sequence serves both
//! languages.
//!
//! `MPI_Errhandler_free` only releases the user's reference: a handler stays valid while a window
//! uses it, and `MPI_Win_get_errhandler` returns a new reference to it.

use crate::error::Error;
use crate::messages;
use crate::mpi::host::Abi;
use crate::mpi::{Handle, Host};
use crate::number::Number;
use crate::sync::Ordering;
use crate::sys::dl;
use crate::window::{Carrier, Window};
use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The user's function: window handle, error code, and further arguments that an MPI may add
/// (MPI-4.1 §9.3.2).
type Handler = unsafe extern "C-unwind" fn(*mut usize, *mut c_int, ...);

/// The function of MPICH 5's extension: window handle, error code, the state given at creation.
type Extended = unsafe extern "C-unwind" fn(usize, c_int, *mut c_void);

/// The extension's destructor of the state.
type Destructor = unsafe extern "C-unwind" fn(*mut c_void);

/// The function of MPICH's bindings that calls C++ functions: kind of object, handle, error code,
/// function.
type MpichCxx = unsafe extern "C-unwind" fn(c_int, *mut c_int, *mut c_int, usize);

/// MPICH's number of the object kind "window".
const MPICH_CXX_WIN: c_int = 2;

/// The function of Open MPI's bindings that calls C++ functions: handle, error code, message,
/// function.
type OpenMpiCxx = unsafe extern "C-unwind" fn(*mut usize, *mut c_int, *const c_char, usize);

/// The function behind a handler.
#[derive(Clone, Copy)]
pub(super) enum Function {
    /// in C or Fortran
    Standard(usize),
    /// MPICH 5's extension: the function, its state
    Extended(usize, usize),
    /// in C++, called by a function of MPICH's bindings
    MpichCxx { caller: usize, function: usize },
    /// in C++, called by a function of Open MPI's bindings
    OpenMpiCxx { caller: usize, function: usize },
}

/// A handler that the user created.
struct UserHandler {
    function: Function,
    /// the destructor of the function's state, and that state
    destructor: Option<(usize, usize)>,
    /// the user's own reference and those of windows
    references: u32,
}

/// The handlers that the user created, by handle.
static MADE: Mutex<BTreeMap<Handle, UserHandler>> = Mutex::new(BTreeMap::new());

/// Adds a reference to a handler. Returns false if the user did not create it.
pub(super) fn keep(handler: Handle) -> bool {
    let mut made = MADE.lock();
    made.get_mut(&handler).map(|entry| entry.references += 1).is_some()
}

/// Releases a reference; the last one frees the object of the host MPI.
pub(super) fn release(host: &Host, handler: Handle) -> Option<c_int> {
    let mut made = MADE.lock();
    let entry = made.get_mut(&handler)?;
    entry.references -= 1;
    if entry.references > 0 {
        return Some(0);
    }
    let destructor = entry.destructor;
    made.remove(&handler);
    // No lock is held in a call of the host MPI: a callback may call this function on another
    // thread.
    drop(made);
    let mut handler = handler;
    // SAFETY: the last reference to an object that `create` made.
    let code = unsafe { (host.call.errhandler_free)(&mut handler) };
    if let Some((destructor, extra)) = destructor {
        // SAFETY: the user passed it to MPIX_Win_create_errhandler_x as a function of this type.
        let destructor: Destructor = unsafe { transmute(destructor) };
        // SAFETY: the state that belongs to the function, which is not used again.
        unsafe { destructor(extra as *mut c_void) };
    }
    Some(code)
}

/// Releases the handler of a window that is about to be freed.
pub(super) fn forget(host: &Host, handler: Handle) {
    release(host, handler);
}

/// Records the function of a handler that was just created.
pub(super) fn record(handler: Handle, function: Function) {
    record_with_destructor(handler, function, None);
}

/// Also records the destructor of its state, if the host MPI does not know it.
pub(super) fn record_with_destructor(
    handler: Handle,
    function: Function,
    destructor: Option<(usize, usize)>,
) {
    MADE.lock().insert(handler, UserHandler { function, destructor, references: 1 });
}

/// Records the function of MPICH's bindings that calls the handler's C++ function.
pub(super) fn set_caller(handler: Handle, caller: usize) {
    if let Some(made) = MADE.lock().get_mut(&handler)
        && let Function::Standard(function) = made.function
    {
        made.function = Function::MpichCxx { caller, function };
    }
}

/// Passes an error to the window's error handler. `say` writes a line before a fatal end. Returns
/// the code for the call, which a handler may have changed.
pub fn handle(host: &'static Host, window: &Window, error: c_int, say: impl FnOnce()) -> c_int {
    let handler = window.errhandler.load(Ordering::Relaxed);
    if handler == host.constants.errors_return || throwing_of_mpich(host) == Some(handler) {
        return error;
    }
    let function = MADE.lock().get(&handler).map(|made| made.function);
    match function.or_else(|| thrower(host, handler)) {
        // SAFETY: a window that lives, and the function of its handler.
        Some(function) => unsafe { call(function, window, error) },
        None => {
            say();
            end(host, window, handler, error);
            error
        }
    }
}

/// Calls the function behind a handler. Returns the code, which the function may have changed.
///
/// # Safety
/// The function has the type that its variant names.
unsafe fn call(function: Function, window: &Window, mut error: c_int) -> c_int {
    // One integer in memory that is large enough for a handle of any ABI.
    let mut win = window.handle.to_usize();
    match function {
        Function::Standard(function) => {
            // SAFETY: the user passed it to MPI_Win_create_errhandler as a function of this type.
            let function: Handler = unsafe { transmute(function) };
            // SAFETY: pointers to a handle and to a code, as the type requires.
            unsafe { function(&mut win, &mut error) };
        }
        Function::Extended(function, extra) => {
            // SAFETY: the user passed it to MPIX_Win_create_errhandler_x as a function of this
            // type.
            let function: Extended = unsafe { transmute(function) };
            // SAFETY: a handle, a code, and the state that belongs to the function.
            unsafe { function(win, error, extra as *mut c_void) };
        }
        Function::MpichCxx { caller, function } => {
            // SAFETY: MPICH's bindings passed it to MPII_Errhandler_set_cxx as a function of this
            // type.
            let caller: MpichCxx = unsafe { transmute(caller) };
            // SAFETY: pointers to a handle and to a code, and the user's function.
            unsafe { caller(MPICH_CXX_WIN, (&raw mut win).cast(), &mut error, function) };
            // The bindings would end the program with any other code.
            error = 0;
        }
        Function::OpenMpiCxx { caller, function } => {
            // SAFETY: the function of Open MPI's bindings that is looked up here has this type.
            let caller: OpenMpiCxx = unsafe { transmute(caller) };
            // SAFETY: pointers to a handle and to a code, no message, the user's function.
            unsafe { caller(&mut win, &mut error, ptr::null(), function) };
        }
    }
    error
}

/// Returns MPI::ERRORS_THROW_EXCEPTIONS of MPICH's C++, which throws after the call returns.
fn throwing_of_mpich(host: &Host) -> Option<Handle> {
    (host.abi == Abi::Mpich).then_some(0x5400_0002)
}

/// Returns MPI::ERRORS_THROW_EXCEPTIONS of Open MPI's C++, which throws within the call.
fn throwing_of_open_mpi(host: &Host) -> Option<Handle> {
    let known = host.abi == Abi::OpenMpi;
    let address = if known { dl::global_symbol(c"ompi_mpi_errors_throw_exceptions") } else { 0 };
    (address != 0).then_some(address)
}

/// Aborts the job (MPI_ERRORS_ARE_FATAL), or at least the processes of the window
/// (MPI_ERRORS_ABORT) (MPI-4.1 §9.3). The MPI's own handler would name a function that the program
/// has not called.
fn end(host: &Host, window: &Window, handler: Handle, error: c_int) {
    match (&window.carrier, window.local()) {
        (_, Some(node)) => {
            // MPICH aborts the processes of any other communicator by messages, and waits for them
            // even if one of the processes cannot be reached. Without MPI_Init there is no
            // MPI_COMM_WORLD.
            let ends_group = handler == host.constants.errors_abort;
            let comm = match ends_group || !host.initialized() {
                true => node.comm().0,
                false => host.constants.comm_world,
            };
            // SAFETY: our communicator, or MPI_COMM_WORLD.
            unsafe { (host.call.abort)(comm, error) };
        }
        (Carrier::Host(delegated), None) => {
            let fatal = host.constants.errors_are_fatal;
            // SAFETY: a window of the host MPI and a predefined handler.
            unsafe { (host.call.win_set_errhandler)(delegated.native, fatal) };
            // SAFETY: a window of the host MPI, whose handler was just set.
            unsafe { (host.call.win_call_errhandler)(delegated.native, error) };
        }
        (_, None) => unreachable!("libfompi implements it"),
    }
}

/// Returns the function of Open MPI's C++ that throws, if `handler` represents it. Exceptions pass
/// through libfompi as they do through an MPI: no caller of a handler holds a lock.
fn thrower(host: &Host, handler: Handle) -> Option<Function> {
    let throws = throwing_of_open_mpi(host) == Some(handler);
    let address = if throws { dl::global_symbol(c"ompi_mpi_cxx_win_throw_excptn_fctn") } else { 0 };
    (address != 0).then_some(Function::Standard(address))
}

/// Whether a handler is predefined by the host MPI.
pub(super) fn is_predefined(host: &Host, handler: Handle) -> bool {
    let c = &host.constants;
    // Open MPI has MPI_ERRORS_ABORT from version 5 on.
    let abort = (c.errors_abort != 0).then_some(c.errors_abort);
    let others = [abort, throwing_of_mpich(host), throwing_of_open_mpi(host)];
    [c.errors_are_fatal, c.errors_return].contains(&handler) || others.contains(&Some(handler))
}

/// Sets the handler of a window.
pub(super) fn set(host: &Host, window: &Window, handler: Handle) -> Result<(), Error> {
    if !is_predefined(host, handler) && !keep(handler) {
        return Err(Error::Wrong(&messages::ERRHANDLER));
    }
    let old = window.errhandler.swap(handler, Ordering::Relaxed);
    release(host, old);
    Ok(())
}
