//! What a call answers: success, or an error code through the right error handler (MPI-4.1 §9.3).

use super::MPI_Comm;
use crate::error::{Class, Error, Result};
use crate::mpi::{Handle, Host};
use crate::window::registry::{self, Found};
use crate::window::{Node, Road, Window, report};
use core::ffi::{c_char, c_int};
use parking_lot::Mutex;
use std::ffi::CString;

/// Carries a call on a window out: `ours` on one in shared memory, `theirs` with a window of the
/// MPI underneath.
#[inline]
pub fn on_window(
    call: &'static str,
    host: &'static Host,
    win: usize,
    ours: impl FnOnce(&'static Window, &'static Node) -> Result<()>,
    theirs: impl FnOnce(Handle) -> c_int,
) -> c_int {
    match registry::find(host.handle(win)) {
        Found::Window(window) => {
            let result = match &window.road {
                Road::Node(node) | Road::Wide(node) => ours(window, node),
                Road::Host(delegated) => match theirs(delegated.native) {
                    0 => Ok(()),
                    code => Err(Error::Host(code)),
                },
            };
            match result {
                Ok(()) => 0,
                Err(error) => raise(call, host, window, error),
            }
        }
        Found::Foreign if !is_null(host, win) => theirs(host.handle(win)),
        _ => no_window(call, host, win),
    }
}

/// The same for what is the library's own business also where the window is delegated.
pub fn on_any_window(
    call: &'static str,
    host: &'static Host,
    win: usize,
    ours: impl FnOnce(&'static Window) -> Result<()>,
    theirs: impl FnOnce(Handle) -> c_int,
) -> c_int {
    match registry::find(host.handle(win)) {
        Found::Window(window) => match ours(window) {
            Ok(()) => 0,
            Err(error) => raise(call, host, window, error),
        },
        Found::Foreign if !is_null(host, win) => theirs(host.handle(win)),
        _ => no_window(call, host, win),
    }
}

/// MPI_WIN_NULL, or no handle at all.
pub fn is_null(host: &Host, win: usize) -> bool {
    let win = host.handle(win);
    win == host.constants.win_null || win == 0
}

/// Checks that there is a place for what a call answers.
pub fn place_for<T>(answer: *const T) -> Result<()> {
    if answer.is_null() {
        return Err(Error::Argument(Class::Arg, "null pointer as the place for an answer,", 0));
    }
    Ok(())
}

/// The code of an error, in the numbers of the ABI.
pub fn code(host: &Host, error: &Error) -> c_int {
    match error {
        Error::Host(code) => *code,
        Error::Died { .. }
        | Error::Differs { .. }
        | Error::Fault { .. }
        | Error::Forbidden { .. }
        | Error::Lost { .. }
        | Error::Unanswered { .. }
        | Error::Registration { .. }
        | Error::Refused { .. }
        | Error::Missing(..)
        | Error::System { errno: libc::EMFILE | libc::ENFILE, .. }
        | Error::NoVerbs(_) => code_with_text(host, error),
        other => host.constants.class(other.class()),
    }
}

/// A code of its own for an error that a program may want to know all about: MPI_Error_string names
/// the rank that died, or the address that could not be reached, to a program that handles errors
/// itself (MPI-4.1 §9.5).
#[cold]
fn code_with_text(host: &Host, error: &Error) -> c_int {
    static CODES: Codes = Codes::new();
    let text = error.to_string();
    let class = host.constants.class(error.class());
    CODES.get(text, class, |text| new_code(host, error, text))
}

/// The codes that were made, with their texts.
struct Codes(Mutex<Vec<(String, c_int)>>);

impl Codes {
    /// more texts than these get the code of their class
    const TEXTS_MAX: usize = 64;

    const fn new() -> Codes {
        Codes(Mutex::new(Vec::new()))
    }

    /// The code of a text, which `make` makes the first time, or else that of its class. Nothing is
    /// locked meanwhile: `make` calls the MPI underneath, where another thread may be in a callback
    /// that comes here, and hold what `make` waits for. Of two threads that make a code for a text
    /// the first one counts.
    fn get(&self, text: String, class: c_int, make: impl FnOnce(&str) -> Option<c_int>) -> c_int {
        let known = |codes: &[(String, c_int)]| {
            let found = codes.iter().find(|(known, _)| *known == text);
            found.map(|(_, code)| *code).or((codes.len() >= Codes::TEXTS_MAX).then_some(class))
        };
        let codes = self.0.lock();
        if let Some(code) = known(&codes) {
            return code;
        }
        drop(codes);
        let made = make(&text).unwrap_or(class);
        let mut codes = self.0.lock();
        if let Some(code) = known(&codes) {
            return code;
        }
        codes.push((text, made));
        made
    }
}

/// Makes a code with a text. MPICH 4.0 mixes up the texts of codes that are added to its own
/// classes: the end of a process and ranks that differ, which have none of their own, get a new
/// class; else such a code is not used.
fn new_code(host: &Host, error: &Error, text: &str) -> Option<c_int> {
    let (mut class, mut code) = (host.constants.class(error.class()), 0);
    let c_text = CString::new(text).ok()?;
    if let Error::Died { .. }
    | Error::Lost { .. }
    | Error::Unanswered { .. }
    | Error::Differs { .. } = error
    {
        // SAFETY: an out parameter of ours, and a C string shorter than MPI_MAX_ERROR_STRING.
        let made = unsafe { (host.call.add_error_class)(&mut class) } == 0
            && unsafe { (host.call.add_error_string)(class, c_text.as_ptr()) } == 0;
        made.then_some(())?;
    }
    // SAFETY: likewise.
    let made = unsafe { (host.call.add_error_code)(class, &mut code) } == 0
        && unsafe { (host.call.add_error_string)(code, c_text.as_ptr()) } == 0;
    (made && host_text(host, code).as_deref() == Some(text)).then_some(code)
}

/// Answers an error of a call on a window, through the window's error handler.
#[cold]
#[inline(never)]
pub fn raise(call: &'static str, host: &'static Host, window: &Window, error: Error) -> c_int {
    let error = match &window.road {
        Road::Wide(node) => node.with_rank(error),
        Road::Node(_) | Road::Host(_) => error,
    };
    let code = code(host, &error);
    super::errhandler::handle(host, window, code, || {
        report::say(&format!("{call}: {}", text(host, &error)));
    })
}

/// Answers an error of a call that has a communicator but no window (yet).
#[cold]
pub fn raise_on_comm(call: &'static str, host: &Host, comm: MPI_Comm, error: Error) -> c_int {
    let (code, mut comm) = (code(host, &error), host.handle(comm));
    if comm == host.constants.comm_null || comm == 0 {
        comm = default_comm(host);
    }
    if is_fatal(host, comm) {
        report::say(&format!("{call}: {}", text(host, &error)));
    }
    crate::mpi::comm::Comm(comm).raise(host, code);
    code
}

/// Answers an error of a call that has neither.
#[cold]
pub fn raise_alone(call: &'static str, host: &Host, error: Error) -> c_int {
    raise_on_comm(call, host, host.constants.comm_null, error)
}

/// The MPI underneath raises the error, by a call of its own with MPI_WIN_NULL: it knows whose
/// error handler is called where there is no window.
#[cold]
#[inline(never)]
fn no_window(call: &'static str, host: &Host, win: usize) -> c_int {
    let what = if is_null(host, win) { "MPI_WIN_NULL," } else { "window that was freed," };
    let error = Error::Argument(Class::Win, what, host.handle(win) as i64);
    if is_fatal(host, default_comm(host)) {
        report::say(&format!("{call}: {error}"));
    }
    // SAFETY: the null handle, about which every MPI says that it is no window.
    match unsafe { (host.call.win_sync)(host.constants.win_null) } {
        0 => code(host, &error),
        raised => raised,
    }
}

/// Whose error handler is called for errors that belong to no object: MPI_COMM_SELF since MPI-4.0
/// (§9.3), MPI_COMM_WORLD before. Programs have set the handler that their MPI calls: MPICH follows
/// since it has MPI-4.1 (its version 4.2), and Intel MPI does not.
fn default_comm(host: &Host) -> Handle {
    let (mut version, mut minor) = (0, 0);
    if let Some(get_version) = host.call.get_version {
        // SAFETY: out parameters of ours.
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
    // SAFETY: an out parameter of ours.
    let code = unsafe { (host.call.comm_get_errhandler)(comm, &mut handler) };
    // The reference that this gave is kept: giving one to a predefined handler back is an error in
    // some MPIs, and the process ends or the program handles few such errors.
    code != 0 || host.handle(handler) == host.constants.errors_are_fatal
}

/// An error in words.
fn text(host: &Host, error: &Error) -> String {
    let Error::Host(code) = error else { return error.to_string() };
    host_text(host, *code).unwrap_or_else(|| error.to_string())
}

/// What MPI_Error_string says of a code.
fn host_text(host: &Host, code: c_int) -> Option<String> {
    let mut buffer = [0 as c_char; 1024];
    let mut length = 0;
    // SAFETY: the buffer is longer than MPI_MAX_ERROR_STRING of every ABI.
    unsafe { (host.call.error_string)(code, buffer.as_mut_ptr(), &mut length) };
    let bytes = buffer.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    String::from_utf8(bytes).ok()
}

/// The asserts that a call takes (MPI-4.1 §12.5.5); others are an error.
pub fn asserts(
    host: &Host,
    given: c_int,
    allowed: &[fn(&crate::mpi::constants::Constants) -> c_int],
) -> Result<crate::window::synchronise::Asserts> {
    let c = &host.constants;
    let known = allowed.iter().fold(0, |bits, constant| bits | constant(c));
    if given & !known != 0 {
        return Err(Error::Argument(Class::Assert, "assert", i64::from(given)));
    }
    Ok(crate::window::synchronise::Asserts {
        nocheck: given & c.mode_nocheck != 0,
        noprecede: given & c.mode_noprecede != 0,
        nosucceed: given & c.mode_nosucceed != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_codes_while_another_one_makes_one() {
        let codes = Codes::new();
        let get = |text: &str, code| codes.get(text.to_owned(), -1, |_| Some(code));
        let made = codes.get("first".to_owned(), -1, |_| {
            assert!(!codes.0.is_locked());
            std::thread::scope(|scope| {
                assert_eq!(scope.spawn(|| get("second", 2)).join().unwrap(), 2);
                assert_eq!(scope.spawn(|| get("first", 3)).join().unwrap(), 3);
            });
            Some(1)
        });
        // Of two codes for a text the first one counts, from then on.
        assert_eq!((made, get("first", 4), get("second", 5)), (3, 3, 2));
    }

    #[test]
    fn texts_without_a_code_get_that_of_their_class() {
        let codes = Codes::new();
        assert_eq!(codes.get("none".to_owned(), 17, |_| None), 17);
        for text in 1..Codes::TEXTS_MAX {
            assert_eq!(codes.get(text.to_string(), 17, |_| Some(100)), 100);
        }
        assert_eq!(codes.get("one more".to_owned(), 17, |_| unreachable!()), 17);
    }
}
