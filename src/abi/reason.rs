//! Reasons of errors, for programs that handle errors themselves and call MPI_Error_string. A call
//! returns the class of its error, if the class is sufficient. The reason is a text with the rank,
//! the address and the limit. Each thread keeps the reason of its last error of each code, and
//! MPI_Error_string appends it to the host MPI's text for the code (MPI-4.1 §9.3.4).

use crate::error::Error;
use crate::messages::{self, Message};
use crate::mpi::Host;
use crate::mpi::host::Abi;
use crate::number::Number;
use crate::sync::{AtomicI32, Ordering};
use core::ffi::{CStr, c_char, c_int};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;

thread_local! {
    /// The reasons of the last errors of this thread, by code.
    static REASONS: RefCell<BTreeMap<c_int, Reason>> = const { RefCell::new(BTreeMap::new()) };
}

/// The reason of an error.
#[derive(Clone)]
struct Reason {
    /// the call, and the text of the error
    text: String,
    message: &'static Message,
}

impl Reason {
    fn of(call: &str, error: &Error) -> Reason {
        Reason { text: format!("{call}: {error}"), message: error.message() }
    }
}

/// Keeps the reason of an error that a call of this thread returns. The reason of an error of the
/// host MPI is unknown.
pub fn keep(code: c_int, call: &str, error: &Error) {
    // Fails if the thread is about to end; then it does not call MPI_Error_string again.
    let _ = REASONS.try_with(|reasons| match error {
        Error::Host(_) => reasons.borrow_mut().remove(&code),
        error => reasons.borrow_mut().insert(code, Reason::of(call, error)),
    });
}

/// Returns the reason of this thread's last error of this code.
fn of(code: c_int) -> Option<Reason> {
    REASONS.try_with(|reasons| reasons.borrow().get(&code).cloned()).ok().flatten()
}

/// Returns `text`, if any, a colon and the text of `reason`, truncated to whole characters so that
/// the code of the message fits into `bytes_max` bytes, too.
fn joined(text: Option<&str>, reason: &Reason, bytes_max: usize) -> String {
    let mut joined = text.map_or(String::new(), |text| format!("{text}: ")) + &reason.text;
    let code_bytes = reason.message.line("").to_string().len();
    while joined.len() + code_bytes > bytes_max {
        joined.pop();
    }
    reason.message.line(joined).to_string()
}

entry! {
    /// Returns the text of an error code (MPI-4.1 §9.3.4): that of the host MPI, and the reason of
    /// this thread's last error with this code, if libfompi returned it. Errors: those of the host
    /// MPI.
    MPI_Error_string PMPI_Error_string (
        errorcode: c_int, string: *mut c_char, resultlen: *mut c_int,
    ) {
        let host = Host::get();
        // SAFETY: the caller's arguments, passed on unchanged.
        let answer = unsafe { (host.call.error_string)(errorcode, string, resultlen) };
        if answer == 0 && let Some(reason) = of(errorcode) {
            // SAFETY: the host MPI has stored a text of this length there.
            unsafe { add(host, errorcode, &reason, string, resultlen) };
        }
        answer
    }
}

/// Appends a reason to the text of an error code. For libfompi's own codes the reason replaces the
/// text, because the text says less.
///
/// # Safety
/// `string` is a C string in MPI_MAX_ERROR_STRING bytes, and `resultlen` may be written.
unsafe fn add(
    host: &Host,
    code: c_int,
    reason: &Reason,
    string: *mut c_char,
    resultlen: *mut c_int,
) {
    let bytes_max = if host.abi == Abi::OpenMpi { 256 } else { 512 };
    // SAFETY: a C string, as the caller guarantees.
    let text = unsafe { CStr::from_ptr(string) }.to_string_lossy();
    // The Fortran buffers of some MPIs have no space for the terminating byte.
    let is_ours = [&PROCESS_LOST, &SETTINGS_DIFFER]
        .map(|kind| kind.code.load(Ordering::Relaxed))
        .contains(&code);
    let joined = joined((!is_ours).then_some(&text), reason, bytes_max - 2);
    let Ok(c_text) = CString::new(joined) else { return };
    let bytes = c_text.as_bytes_with_nul();
    // SAFETY: shorter than the caller's buffer.
    unsafe {
        string.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        resultlen.write(bytes.len().to_i32() - 1);
    }
}

/// An error with its own code and class (MPI-4.1 §9.5), because the standard has no class for it
/// and a program may want to react to it.
pub struct OwnCode {
    message: &'static Message,
    /// 0: not made yet
    code: AtomicI32,
}

/// A process that died or cannot be reached.
pub static PROCESS_LOST: OwnCode = OwnCode::new(&messages::LOST_CLASS);
/// A counter of notifications that a process does not have.
pub static NOTIFICATION: OwnCode = OwnCode::new(&messages::NOTIFICATION_CLASS);
/// Ranks disagree on a setting that must be identical.
pub static SETTINGS_DIFFER: OwnCode = OwnCode::new(&messages::DIFFER_CLASS);

impl OwnCode {
    const fn new(message: &'static Message) -> OwnCode {
        OwnCode { message, code: AtomicI32::new(0) }
    }

    /// Returns its code, or `class` if the host MPI cannot add one.
    pub fn code(&self, host: &Host, class: c_int) -> c_int {
        self.made(|| self.make(host).unwrap_or(class))
    }

    /// Returns its class, or `class` if the host MPI cannot add one.
    pub fn class(&self, host: &Host, class: c_int) -> c_int {
        let (code, mut own) = (self.code(host, class), 0);
        // SAFETY: a local out parameter.
        let found = unsafe { (host.call.error_class)(code, &mut own) } == 0;
        if found { own } else { class }
    }

    /// Returns the code, which `make` adds at the first call. No lock is held meanwhile, because
    /// `make` calls the host MPI: a callback on another thread may call this function while it
    /// holds a lock for which `make` waits. If two threads add a code, the first one is used.
    fn made(&self, make: impl FnOnce() -> c_int) -> c_int {
        // Relaxed: no other data depend on the number.
        match self.code.load(Ordering::Relaxed) {
            0 => {}
            code => return code,
        }
        let made = make();
        match self.code.compare_exchange(0, made, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => made,
            Err(first) => first,
        }
    }

    /// Adds a new class: MPICH 4.0 mixes up the texts of codes that are added to its own classes.
    fn make(&self, host: &Host) -> Option<c_int> {
        let (mut class, mut code) = (0, 0);
        let text = CString::new(self.message.line(self.message.text).to_string()).ok()?;
        // SAFETY: local out parameters, and C strings shorter than MPI_MAX_ERROR_STRING.
        let made = unsafe {
            (host.call.add_error_class)(&mut class) == 0
                && (host.call.add_error_string)(class, text.as_ptr()) == 0
                && (host.call.add_error_code)(class, &mut code) == 0
                && (host.call.add_error_string)(code, text.as_ptr()) == 0
        };
        made.then_some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_of_a_code_has_the_reason() {
        let error = |rank| Error::TargetRank { rank, size: 4 };
        assert!(of(6).is_none());
        keep(6, "MPI_Put", &error(7));
        keep(6, "MPI_Get", &error(9));
        keep(8, "MPI_Put", &Error::Wrong(&messages::NOT_LOCKED));
        let text = |code| of(code).map(|reason| joined(None, &reason, 100));
        let expected = "MPI_Get: target rank 9 is invalid: the window has 4 ranks [FOMPI-E001]";
        assert_eq!(text(6).as_deref(), Some(expected));
        assert_eq!(text(8).as_deref(), Some("MPI_Put: target is not locked [FOMPI-E031]"));
        let elsewhere = std::thread::spawn(|| of(6).is_none());
        assert!(elsewhere.join().unwrap());
        keep(6, "MPI_Put", &Error::Host(6));
        assert!(of(6).is_none());
    }

    #[test]
    fn a_text_that_is_too_long_ends_with_a_whole_character_and_its_code() {
        let reason = |text: &str| Reason { text: text.into(), message: &messages::NOT_LOCKED };
        let code = " [FOMPI-E031]";
        let joined = |text, reason_text: &str, bytes_max| {
            let joined = joined(text, &reason(reason_text), bytes_max + code.len());
            joined.strip_suffix(code).map(str::to_owned).unwrap()
        };
        assert_eq!(joined(Some("class"), "reason", 20), "class: reason");
        assert_eq!(joined(None, "reason", 20), "reason");
        assert_eq!(joined(Some("class"), "reason", 9), "class: re");
        assert_eq!(joined(Some("class"), "\u{a7}1", 8), "class: ");
    }

    #[test]
    fn a_thread_gets_a_code_while_another_one_makes_it() {
        let kind = OwnCode::new(&messages::LOST_CLASS);
        let made = kind.made(|| {
            std::thread::scope(|scope| {
                assert_eq!(scope.spawn(|| kind.made(|| 2)).join().unwrap(), 2);
            });
            1
        });
        assert_eq!((made, kind.made(|| 3)), (2, 2));
    }
}
