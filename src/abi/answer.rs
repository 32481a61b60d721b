//! The return value of a call: success, or an error code by the appropriate error handler (MPI-4.1
//! §9.3).

use super::{MPI_Comm, reason};
use crate::error::{Error, Result};
use crate::messages;
use crate::mpi::{Handle, Host};
use crate::report;
use crate::window::countdown::QUICK_PER_FULL;
use crate::window::registry::{self, Found};
use crate::window::synchronise::Asserts;
use crate::window::{LocalWindow, Window, label};
use core::ffi::{c_char, c_int};

/// Executes a call on a window: `ours` if libfompi implements the window, `theirs` with the host
/// MPI's window if it is delegated.
#[inline]
pub fn on_window(
    call: &'static str,
    host: &'static Host,
    win: usize,
    ours: impl FnOnce(&'static Window, &'static LocalWindow) -> Result<()>,
    theirs: impl FnOnce(Handle) -> Result<()>,
) -> c_int {
    match registry::find(host.handle(win)) {
        Found::Window(window) => {
            let result = match window.local_or_host() {
                Ok(node) => {
                    let result = ours(window, node);
                    if window.is_due::<QUICK_PER_FULL>() {
                        window.countdown_ended();
                    }
                    result
                }
                Err(delegated) => theirs(delegated.native),
            };
            match result {
                Ok(()) => 0,
                Err(error) => raise(call, host, window, error),
            }
        }
        Found::Foreign if !is_null(host, win) => foreign(call, host, theirs(host.handle(win))),
        _ => no_window(call, host, win),
    }
}

/// Returns the code of a call on a window that the host MPI has made, which has raised its error.
fn foreign(call: &'static str, host: &Host, result: Result<()>) -> c_int {
    result.map_or_else(|error| code_with_reason(host, call, &error), |()| 0)
}

/// Executes a call that libfompi implements for all its windows, including delegated ones.
pub fn on_any_window(
    call: &'static str,
    host: &'static Host,
    win: usize,
    ours: impl FnOnce(&'static Window) -> Result<()>,
    theirs: impl FnOnce(Handle) -> Result<()>,
) -> c_int {
    match registry::find(host.handle(win)) {
        Found::Window(window) => match ours(window) {
            Ok(()) => 0,
            Err(error) => raise(call, host, window, error),
        },
        Found::Foreign if !is_null(host, win) => foreign(call, host, theirs(host.handle(win))),
        _ => no_window(call, host, win),
    }
}

/// Whether a handle is MPI_WIN_NULL or 0.
pub fn is_null(host: &Host, win: usize) -> bool {
    let win = host.handle(win);
    win == host.constants.win_null || win == 0
}

/// Checks that an output argument is not null.
pub fn check_output<T>(answer: *const T) -> Result<()> {
    if answer.is_null() {
        return Err(Error::Wrong(&messages::NULL_OUTPUT));
    }
    Ok(())
}

/// Returns the code of an error in the ABI's numbering. The code is the class, except for errors
/// that have no class in the standard and to which a program may want to react.
pub fn code(host: &Host, error: &Error) -> c_int {
    let class = host.constants.class(error.class());
    match error {
        Error::Host(code) => *code,
        Error::Died { .. } | Error::Lost { .. } | Error::Unanswered { .. } => {
            reason::PROCESS_LOST.code(host, class)
        }
        Error::Differs { .. } => reason::SETTINGS_DIFFER.code(host, class),
        Error::NoCounter { .. } => reason::NOTIFICATION.code(host, class),
        _ => class,
    }
}

/// Returns the code of an error that goes to no error handler now, and keeps its reason: the code
/// with which a request fails, for the call that completes the request; and that of a call that has
/// no object.
pub fn code_with_reason(host: &Host, call: &'static str, error: &Error) -> c_int {
    let code = code(host, error);
    reason::keep(code, call, error);
    code
}

/// Raises an error of a call on a window, by the window's error handler. Returns the code.
#[cold]
#[inline(never)]
pub fn raise(call: &'static str, host: &'static Host, window: &Window, error: Error) -> c_int {
    let error = match window.local() {
        Some(node) => node.with_rank(error),
        None => error,
    };
    let (code, call) = (code(host, &error), label::call_on(window, call));
    reason::keep(code, &call, &error);
    super::errhandler::handle(host, window, code, || {
        let text = text(host, &error);
        report::print_fatal(error.message(), format_args!("{call}: {text}"));
    })
}

/// Raises an error of a call that has a communicator but no window. Returns the code.
#[cold]
pub fn raise_on_comm(call: &'static str, host: &Host, comm: MPI_Comm, error: Error) -> c_int {
    let (code, mut comm) = (code(host, &error), host.handle(comm));
    reason::keep(code, call, &error);
    if comm == host.constants.comm_null || comm == 0 {
        comm = default_comm(host);
    }
    end_if_fatal(host, comm, code, || {
        let text = text(host, &error);
        report::print_fatal(error.message(), format_args!("{call}: {text}"));
    });
    crate::mpi::comm::Comm(comm).raise(host, code);
    code
}

/// Prints an error and aborts the job if the communicator's error handler is fatal: the handler
/// itself would name a function that the program has not called.
fn end_if_fatal(host: &Host, comm: Handle, code: c_int, print: impl FnOnce()) {
    if is_fatal(host, comm) {
        print();
        // SAFETY: a communicator with an error handler.
        unsafe { (host.call.abort)(comm, code) };
    }
}

/// Raises an error of a call that has neither a window nor a communicator. Returns the code.
#[cold]
pub fn raise_alone(call: &'static str, host: &Host, error: Error) -> c_int {
    raise_on_comm(call, host, host.constants.comm_null, error)
}

/// Raises the error of a call on an invalid window handle. Returns the code.
#[cold]
#[inline(never)]
fn no_window(call: &'static str, host: &Host, win: usize) -> c_int {
    let message = if is_null(host, win) { &messages::WIN_NULL } else { &messages::WIN_INVALID };
    raise_alone(call, host, Error::Wrong(message))
}

/// Returns the communicator whose error handler is called for errors that belong to no object:
/// MPI_COMM_SELF since MPI-4.0 (§9.3), MPI_COMM_WORLD in earlier versions. Programs rely on the
/// handler that their MPI calls: MPICH calls that of MPI_COMM_SELF from version 4.2 (MPI-4.1) on;
/// Intel MPI does not.
fn default_comm(host: &Host) -> Handle {
    let (mut version, mut minor) = (0, 0);
    if let Some(get_version) = host.call.get_version {
        // SAFETY: local out parameters.
        unsafe { get_version(&mut version, &mut minor) };
    }
    if (version, minor) >= (4, 1) && !host.is_intel {
        host.constants.comm_self
    } else {
        host.constants.comm_world
    }
}

fn is_fatal(host: &Host, comm: Handle) -> bool {
    let mut handler: Handle = 0;
    // SAFETY: a local out parameter.
    let code = unsafe { (host.call.comm_get_errhandler)(comm, &mut handler) };
    // The reference from this call is not released: on some MPIs, freeing a predefined handler is
    // an error. Few references leak, because the process ends or the program handles few such
    // errors.
    code != 0 || host.handle(handler) == host.constants.errors_are_fatal
}

/// Returns the text of an error.
fn text(host: &Host, error: &Error) -> String {
    let Error::Host(code) = error else { return error.to_string() };
    host_text(host, *code).unwrap_or_else(|| error.to_string())
}

/// Returns the text of MPI_Error_string for a code.
fn host_text(host: &Host, code: c_int) -> Option<String> {
    let mut buffer = [0 as c_char; 1024];
    let mut length = 0;
    // SAFETY: the buffer is longer than MPI_MAX_ERROR_STRING of every ABI.
    unsafe { (host.call.error_string)(code, buffer.as_mut_ptr(), &mut length) };
    // C's `char` is signed on some processors.
    let byte = |char: &c_char| u8::from_ne_bytes(char.to_ne_bytes());
    let bytes = buffer.iter().map(byte).take_while(|byte| *byte != 0).collect();
    String::from_utf8(bytes).ok()
}

/// Returns the asserts of a call (MPI-4.1 §12.5.5). Asserts that are not `allowed` are an error.
pub fn asserts(
    host: &Host,
    given: c_int,
    allowed: &[fn(&crate::mpi::constants::Constants) -> c_int],
) -> Result<Asserts> {
    if given == 0 {
        return Ok(Asserts::default());
    }
    let c = &host.constants;
    let known = allowed.iter().fold(0, |bits, constant| bits | constant(c));
    if given & !known != 0 {
        return Err(Error::Argument(&messages::ASSERT, i64::from(given)));
    }
    Ok(Asserts {
        nocheck: given & c.mode_nocheck != 0,
        noprecede: given & c.mode_noprecede != 0,
        nosucceed: given & c.mode_nosucceed != 0,
    })
}
