//! Pass-through mode: if libfompi does not support the host MPI, or that MPI precedes libfompi in
//! the program's link order, every call is passed to that MPI with its arguments unchanged. All
//! arguments are as wide as registers, so no part of a handle is lost, whatever that MPI's handles
//! are. The call goes to the function that the program would have reached without libfompi: that of
//! a profiling tool, if one follows in the link order. A function with a name of libfompi's own is
//! nowhere else: it raises MPI_ERR_UNSUPPORTED_OPERATION through the handler of its window.
//!
//! | state     | meaning                                |
//! |-----------|----------------------------------------|
//! | [`SERVED`]  | libfompi serves the MPI              |
//! | [`PASSED`]  | it does not: all calls are passed on |
//! | [`UNKNOWN`] | not determined yet                   |

use crate::config::{Config, Fallback};
use crate::messages::{self, Filled, filled};
use crate::mpi::Host;
use crate::mpi::host::Unserved;
use crate::number::Number;
use crate::sync::{AtomicU32, AtomicUsize, Ordering};
use crate::sys::dl;
use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use std::sync::OnceLock;

const SERVED: u32 = 0;
const PASSED: u32 = 1;
const UNKNOWN: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Whether calls may have to be passed on.
#[inline(always)]
pub fn may_apply() -> bool {
    // Relaxed: constant once it is known; a thread that reads UNKNOWN determines it.
    STATE.load(Ordering::Relaxed) != SERVED
}

/// Returns the MPI to which calls are passed on, if libfompi is in pass-through mode. Writes a line
/// about it, once.
#[cold]
pub fn unserved_host() -> Option<&'static Unserved> {
    let unserved = Host::unserved();
    let state = if unserved.is_some() { PASSED } else { SERVED };
    if STATE.swap(state, Ordering::Relaxed) == UNKNOWN
        && let Some(unserved) = unserved
    {
        say(unserved);
    }
    unserved
}

fn say(unserved: &Unserved) {
    let config = Config::get();
    let wanted = config.verbose || config.fallback != Fallback::Quiet && !config.disable;
    if wanted && crate::config::is_first_rank() {
        filled!(messages::STANDS_ASIDE; why = unserved.why).line().print();
    }
}

/// The function to which the calls of one entry are passed on.
pub struct NextFunction {
    name: &'static CStr,
    /// the address; 0: not resolved yet
    address: AtomicUsize,
}

impl NextFunction {
    /// Creates the entry for the function `name`, whose address is not resolved yet.
    pub const fn new(name: &'static CStr) -> NextFunction {
        NextFunction { name, address: AtomicUsize::new(0) }
    }

    /// Returns the address, if calls are passed on.
    #[cold]
    pub fn find(&self) -> Option<usize> {
        let unserved = unserved_host()?;
        let mut address = self.address.load(Ordering::Relaxed);
        if address == 0 {
            address = function(unserved, self.name);
            self.address.store(address, Ordering::Relaxed);
        }
        Some(address)
    }
}

/// Returns the function `name` of the MPI, or of a tool in front of it. Exits if there is none:
/// without libfompi the program would not have started, or would have failed here.
pub fn function(unserved: &Unserved, name: &CStr) -> usize {
    let shown = name.to_str().unwrap_or_default();
    let config = Config::get();
    if config.fallback == Fallback::Error
        && !config.disable
        && let Some(refusal) = refusal(shown)
    {
        return refusal;
    }
    let next = dl::next_symbol(name);
    let address = if next != 0 { next } else { unserved.library.symbol(name) };
    if address == 0 {
        filled!(messages::NO_SUCH_FUNCTION; call = shown).line().print();
        std::process::abort();
    }
    address
}

/// Returns the function that replaces a window constructor if FOMPI_FALLBACK=error.
fn refusal(name: &str) -> Option<usize> {
    let name = name.trim_start_matches('P');
    match name.strip_suffix("_c").unwrap_or(name) {
        "MPI_Win_create" => Some(refuse_create as *const () as usize),
        "MPI_Win_allocate" => Some(refuse_allocate as *const () as usize),
        "MPI_Win_allocate_shared" => Some(refuse_allocate_shared as *const () as usize),
        "MPI_Win_create_dynamic" => Some(refuse_dynamic as *const () as usize),
        _ => None,
    }
}

extern "C-unwind" fn refuse_create(_: usize, _: usize, _: usize, _: usize, comm: usize) -> c_int {
    refuse("MPI_Win_create", comm)
}

extern "C-unwind" fn refuse_allocate(_: usize, _: usize, _: usize, comm: usize) -> c_int {
    refuse("MPI_Win_allocate", comm)
}

extern "C-unwind" fn refuse_allocate_shared(_: usize, _: usize, _: usize, comm: usize) -> c_int {
    refuse("MPI_Win_allocate_shared", comm)
}

extern "C-unwind" fn refuse_dynamic(_: usize, comm: usize) -> c_int {
    refuse("MPI_Win_create_dynamic", comm)
}

/// Raises an error through the communicator's handler, with a new error class: the numbers of this
/// MPI's own classes are unknown, but every MPI can add classes (MPI-4.1 §9.5). Ends the process if
/// this one cannot. `call`: the user's call.
fn refuse(call: &str, comm: usize) -> c_int {
    static CLASS: OnceLock<Option<c_int>> = OnceLock::new();
    let text = filled!(messages::UNSERVED_MPI);
    let class = *CLASS.get_or_init(|| new_class(Host::unserved()?, &text));
    raise((call, &text), class, c"PMPI_Comm_call_errhandler", comm)
}

/// Raises MPI_ERR_UNSUPPORTED_OPERATION through the handler of a window, for a function that is
/// libfompi's own, in pass-through mode. `None`: libfompi serves the call. A class is added to an
/// MPI whose classes are unknown, as in [`refuse`]. `window`: finds the handle.
#[cold]
pub fn refuse_own(call: &str, window: impl FnOnce(&Unserved) -> usize) -> Option<c_int> {
    refuse_own_with(call, &filled!(messages::NO_NOTIFICATIONS), window)
}

/// Does [`refuse_own`] with another message.
#[cold]
pub fn refuse_own_with(
    call: &str,
    text: &Filled<'_>,
    window: impl FnOnce(&Unserved) -> usize,
) -> Option<c_int> {
    static CLASS: OnceLock<Option<c_int>> = OnceLock::new();
    let unserved = unserved_host()?;
    let class = *CLASS.get_or_init(|| unserved.unsupported.or_else(|| new_class(unserved, text)));
    Some(raise((call, text), class, c"PMPI_Win_call_errhandler", window(unserved)))
}

/// Returns the window handle of an integer of Fortran. An MPI without a function that converts it
/// has integers as handles.
pub fn window_from_fortran(unserved: &Unserved, number: c_int) -> usize {
    type Convert = unsafe extern "C-unwind" fn(c_int) -> usize;
    match unserved.library.symbol(c"PMPI_Win_f2c") {
        0 => number.cast_unsigned().to_usize(),
        address => {
            // SAFETY: the function of that name has this type, with a handle in a register.
            let convert: Convert = unsafe { core::mem::transmute(address) };
            // SAFETY: an integer of the caller.
            unsafe { convert(number) }
        }
    }
}

/// Raises an error of this MPI through the handler of a communicator or window, by the function
/// `caller`. Returns its class. Ends the process if there is none.
fn raise((call, text): (&str, &Filled), class: Option<c_int>, caller: &CStr, on: usize) -> c_int {
    type Call = unsafe extern "C-unwind" fn(usize, c_int) -> c_int;
    let (Some(class), Some(unserved)) = (class, Host::unserved()) else {
        text.message.line(format_args!("{call}: {text}; the process aborts")).print();
        std::process::abort();
    };
    let address = unserved.library.symbol(caller);
    if address != 0 {
        // SAFETY: the functions that callers name have this type, with a handle in a register.
        let raise: Call = unsafe { core::mem::transmute(address) };
        // SAFETY: the caller's handle.
        unsafe { raise(on, class) };
    }
    class
}

/// Adds an error class to this MPI, with a text.
fn new_class(unserved: &Unserved, text: &Filled) -> Option<c_int> {
    type AddClass = unsafe extern "C-unwind" fn(*mut c_int) -> c_int;
    type AddString = unsafe extern "C-unwind" fn(c_int, *const c_char) -> c_int;
    let find = |name| Some(unserved.library.symbol(name)).filter(|address| *address != 0);
    let (add_class, add_string) = (find(c"PMPI_Add_error_class")?, find(c"PMPI_Add_error_string")?);
    // SAFETY: the functions of these names have these types.
    let add_class: AddClass = unsafe { core::mem::transmute(add_class) };
    // SAFETY: the function of this name has this type.
    let add_string: AddString = unsafe { core::mem::transmute(add_string) };
    // Without the reason: the text must not be longer than the MPI's MPI_MAX_ERROR_STRING.
    let text = CString::new(text.line().to_string()).ok()?;
    let mut class = 0;
    // SAFETY: a local out parameter, then a C string.
    let made = unsafe { add_class(&mut class) == 0 && add_string(class, text.as_ptr()) == 0 };
    made.then_some(class)
}
