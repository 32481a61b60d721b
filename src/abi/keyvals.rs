//! Attributes of windows (MPI-4.1 §12.2.6, §7.7.3). The window has the predefined ones;
//! `window::attributes` stores those with keyvals of the program, also for delegated windows. This
//! file calls the callbacks, with libfompi's window handle, and never while it holds a lock.
//! Windows cannot be duplicated, so copy callbacks are never called.

use super::answer::{check_output, on_any_window, raise_alone};
use super::{MPI_Aint, MPI_Fint, MPI_Win};
use super::{MPI_Win_copy_attr_function, MPI_Win_delete_attr_function};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::messages;
use crate::mpi::Host;
use crate::mpi::attributes::{self, Attribute, Calling, Delete, Language};
use crate::mpi::functions::do_not_copy;
use crate::number::{Number, Offset};
use crate::sync::{AtomicI32, Ordering};
use crate::window::{Facts, Window};
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr;
use std::sync::Arc;

/// The value of an attribute, in the form in which it is stored.
pub(super) enum AttributeValue {
    /// an address, which is the attribute itself
    Address(usize),
    /// a size; the attribute points to it
    Size(&'static isize),
    /// an int; the attribute points to it
    Int(&'static c_int),
    /// an int in C, an address-sized integer in Fortran
    Unit(&'static c_int, isize),
    /// a Fortran integer, and the address at which it is stored
    Integer(isize, usize),
}

impl AttributeValue {
    /// Returns the value that C gets.
    pub(super) fn pointer(&self) -> usize {
        match self {
            AttributeValue::Address(address) => *address,
            AttributeValue::Size(size) => (&raw const **size).addr(),
            AttributeValue::Int(int) | AttributeValue::Unit(int, _) => (&raw const **int).addr(),
            AttributeValue::Integer(_, stored) => *stored,
        }
    }

    /// Returns the value that Fortran gets (MPI-4.1 §19.3.7).
    pub(super) fn integer(&self) -> isize {
        match self {
            AttributeValue::Address(address) => (*address).cast_signed(),
            AttributeValue::Size(size) => **size,
            AttributeValue::Int(int) => (**int).to_isize(),
            AttributeValue::Integer(integer, _) | AttributeValue::Unit(_, integer) => *integer,
        }
    }
}

impl From<&Arc<Attribute>> for AttributeValue {
    fn from(attribute: &Arc<Attribute>) -> AttributeValue {
        match attribute.language {
            Language::C => AttributeValue::Address(attribute.value.cast_unsigned()),
            Language::Fortran => {
                AttributeValue::Integer(attribute.value, (&raw const attribute.value).addr())
            }
        }
    }
}

/// Returns a predefined attribute by its keyval in C.
pub(super) fn predefined(
    host: &Host,
    facts: &'static Facts,
    keyval: c_int,
) -> Option<AttributeValue> {
    let c = &host.constants;
    match keyval {
        k if k == c.win_base => Some(AttributeValue::Address(facts.base)),
        k if k == c.win_size => Some(AttributeValue::Size(&facts.size)),
        k if k == c.win_disp_unit => {
            Some(AttributeValue::Unit(&facts.disp_unit_in_c, facts.disp_unit))
        }
        k if k == c.win_create_flavor => Some(AttributeValue::Int(&facts.create_flavor)),
        k if k == c.win_model => Some(AttributeValue::Int(&facts.model)),
        _ => None,
    }
}

/// Returns an attribute by its keyval in C, or `None` if it is not set.
pub(super) fn find(
    host: &Host,
    window: &'static Window,
    keyval: c_int,
) -> Result<Option<AttributeValue>> {
    if let Some(value) = predefined(host, &window.facts, keyval) {
        return Ok(Some(value));
    }
    if let Some(attribute) = BOUNDS.iter().find(|bound| bound.is(keyval)) {
        return Ok(Some(attribute.value_of(window)));
    }
    let found = window.attributes.find(keyval);
    if found.is_none() {
        attributes::delete_of(host, keyval)?;
    }
    Ok(found.as_ref().map(AttributeValue::from))
}

/// Sets an attribute. An existing value is deleted first (MPI-4.1 §7.7.3).
pub(super) fn set(
    host: &'static Host,
    window: &'static Window,
    keyval: c_int,
    value: isize,
    language: Language,
) -> Result<()> {
    attributes::keep(host, keyval)?;
    let old = window.attributes.find(keyval);
    if let Err(error) = old.map_or(Ok(()), |old| delete(host, window, &old)) {
        attributes::release(host, keyval)?;
        return Err(error);
    }
    window.attributes.push(Attribute { keyval, value, language });
    Ok(())
}

/// A window attribute with a bound of notified operations. The host MPI numbers its keyval.
struct Bound {
    /// 0: not made yet
    keyval: AtomicI32,
    /// its value, and that on a window of the host MPI
    values: [BoundValue; 2],
}

enum BoundValue {
    Int(c_int),
    Count(isize),
}

impl Bound {
    const fn new(values: [BoundValue; 2]) -> Bound {
        Bound { keyval: AtomicI32::new(0), values }
    }

    fn is(&self, keyval: c_int) -> bool {
        // Relaxed: a program has the number from the call that stored it.
        keyval != 0 && self.keyval.load(Ordering::Relaxed) == keyval
    }

    fn value_of(&'static self, window: &Window) -> AttributeValue {
        match &self.values[usize::from(window.local().is_none())] {
            BoundValue::Int(value) => AttributeValue::Int(value),
            BoundValue::Count(value) => AttributeValue::Size(value),
        }
    }

    /// Returns the keyval, which the first call makes; MPI_KEYVAL_INVALID if the host MPI fails.
    fn keyval(&self) -> c_int {
        let host = Host::get();
        match self.keyval.load(Ordering::Relaxed) {
            0 => {}
            made => return made,
        }
        let (copy, remove) = (do_not_copy as *mut c_void, delete_nothing as *mut c_void);
        let mut made = 0;
        // SAFETY: libfompi's own callbacks, and an out parameter.
        if unsafe { (host.call.win_create_keyval)(copy, remove, &mut made, ptr::null_mut()) } != 0 {
            return host.constants.keyval_invalid;
        }
        // If two threads make one, the first is used.
        match self.keyval.compare_exchange(0, made, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => made,
            Err(first) => first,
        }
    }
}

/// The number of counters that are served well, the most, and the largest value of a counter.
static BOUNDS: [Bound; 3] = [
    Bound::new([BoundValue::Int(16), BoundValue::Int(0)]),
    Bound::new([BoundValue::Int(c_int::MAX), BoundValue::Int(0)]),
    Bound::new([BoundValue::Count(isize::MAX), BoundValue::Count(0)]),
];

/// Returns the keyval of the window attribute FOMPI_WIN_NOTIFICATION_NUM_SB: the number of counters
/// that are served well, an int. MPI_Init has been called. Not an MPI function; raises no error.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn fompi_win_notification_num_sb() -> c_int {
    BOUNDS[0].keyval()
}

/// Returns the keyval of the window attribute FOMPI_WIN_NOTIFICATION_NUM_UB: the most counters of a
/// process, an int. MPI_Init has been called. Not an MPI function; raises no error.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn fompi_win_notification_num_ub() -> c_int {
    BOUNDS[1].keyval()
}

/// Returns the keyval of the window attribute FOMPI_WIN_NOTIFICATION_VALUE_UB: the largest value of
/// a counter, an MPI_Count. MPI_Init has been called. Not an MPI function; raises no error.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn fompi_win_notification_value_ub() -> c_int {
    BOUNDS[2].keyval()
}

/// Calls an attribute's delete callback and then removes the attribute. If the callback fails, the
/// attribute stays.
fn delete(host: &Host, window: &'static Window, attribute: &Arc<Attribute>) -> Result<()> {
    let callback = attributes::delete_of(host, attribute.keyval)?;
    match call(callback, window.handle.to_usize(), attribute) {
        0 => {}
        code => return Err(Error::Host(code)),
    }
    if window.attributes.remove(attribute) {
        attributes::release(host, attribute.keyval)?;
    }
    Ok(())
}

/// Deletes all attributes of a window that is about to be freed, the last one first.
pub(super) fn delete_all(host: &Host, window: &'static Window) -> Result<()> {
    while let Some(last) = window.attributes.last() {
        delete(host, window, &last)?;
    }
    Ok(())
}

/// MPICH's number for an attribute that is a C pointer; all other kinds are integers.
pub(super) const KIND_POINTER: c_int = 0;
/// MPICH's number for an attribute that is an address-sized integer.
const KIND_INTEGER: c_int = 1;

/// MPICH's number for the language that set an attribute.
fn kind(language: Language) -> c_int {
    match language {
        Language::C => KIND_POINTER,
        Language::Fortran => KIND_INTEGER,
    }
}

/// Calls a delete callback.
fn call(callback: Delete, win: usize, attribute: &Arc<Attribute>) -> c_int {
    type InC = unsafe extern "C-unwind" fn(usize, c_int, usize, usize) -> c_int;
    type InFortran = unsafe extern "C-unwind" fn(
        *mut MPI_Fint,
        *mut MPI_Fint,
        *mut MPI_Aint,
        *mut MPI_Aint,
        *mut MPI_Fint,
    );
    type Proxy = unsafe extern "C-unwind" fn(usize, usize, c_int, c_int, isize, usize) -> c_int;
    let Delete { function, extra, calling } = callback;
    let (keyval, value) = (attribute.keyval, AttributeValue::from(attribute));
    if function == 0 {
        return 0;
    }
    match calling {
        Calling::C => {
            // SAFETY: the program passed it to MPI_Win_create_keyval as a function of this type.
            let function: InC = unsafe { transmute(function) };
            // SAFETY: a window that lives, its keyval, the attribute and its extra state.
            unsafe { function(win, keyval, value.pointer(), extra) }
        }
        Calling::Fortran => {
            // SAFETY: the program passed it to MPI_WIN_CREATE_KEYVAL as a subroutine of this type.
            let function: InFortran = unsafe { transmute(function) };
            let (mut win, mut keyval, mut error) = (win.low_u32().cast_signed(), keyval, 0);
            let (mut value, mut extra) = (value.integer(), extra.cast_signed());
            // SAFETY: variables of the types that the subroutine expects.
            unsafe { function(&mut win, &mut keyval, &mut value, &mut extra, &mut error) };
            error
        }
        Calling::Proxy(proxy) => {
            // SAFETY: MPICH's bindings passed it to MPII_Keyval_set_proxy as a function of this
            // type.
            let proxy: Proxy = unsafe { transmute(proxy) };
            let kind = kind(attribute.language);
            // SAFETY: the program's function, and the arguments for it as they were set.
            unsafe { proxy(function, win, keyval, kind, attribute.value, extra) }
        }
    }
}

/// The delete callback that the host MPI gets for libfompi's keyvals: it does nothing.
unsafe extern "C-unwind" fn delete_nothing(
    _: usize,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
) -> c_int {
    0
}

/// Creates a keyval and stores it.
///
/// # Safety
/// `keyval` points to an int, or is null.
pub(super) unsafe fn create(host: &Host, delete: Delete, keyval: *mut c_int) -> c_int {
    if keyval.is_null() {
        let error = Error::Wrong(&messages::NULL_KEYVAL);
        return raise_alone("MPI_Win_create_keyval", host, error);
    }
    let (copy, remove) = (do_not_copy as *mut c_void, delete_nothing as *mut c_void);
    let mut number = 0;
    // SAFETY: libfompi's own callbacks, and an out parameter.
    let code = unsafe { (host.call.win_create_keyval)(copy, remove, &mut number, ptr::null_mut()) };
    if code == 0 {
        attributes::add(number, delete);
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { keyval.write(number) };
    }
    code
}

entry! {
    /// Returns an attribute of a window (MPI-4.1 §12.2.6). The predefined attributes are read from
    /// the window, those of the program from libfompi's own list, also for delegated windows.
    /// MPI_WIN_BASE is the address itself; the other predefined attributes point to their value.
    /// Moves no data. Errors: MPI_ERR_WIN, MPI_ERR_KEYVAL for an unknown keyval, MPI_ERR_ARG for a
    /// null pointer.
    MPI_Win_get_attr PMPI_Win_get_attr (
        win: MPI_Win, keyval: c_int, value: *mut c_void, flag: *mut c_int,
    ) {
        serve!(host, on_any_window, "MPI_Win_get_attr", win, |window| {
            check_output(value)?;
            check_output(flag)?;
            let found = find(host, window, keyval)?;
            // SAFETY: the caller's pointer.
            unsafe { flag.write(c_int::from(found.is_some())) };
            if let Some(found) = found {
                // SAFETY: the caller's pointer to a pointer.
                unsafe { value.cast::<usize>().write_unaligned(found.pointer()) };
            }
            Ok(())
        }, win_get_attr |native| (native, keyval, value, flag))
    }

    /// Sets an attribute (MPI-4.1 §7.7.3). libfompi stores the attributes of all windows that it
    /// created, including delegated ones. An existing value is first deleted by the keyval's delete
    /// callback, which gets libfompi's window handle. Errors: MPI_ERR_WIN, MPI_ERR_KEYVAL, and the
    /// code of a delete callback that fails, in which case the old value stays.
    MPI_Win_set_attr PMPI_Win_set_attr (win: MPI_Win, keyval: c_int, value: *mut c_void) {
        serve!(host, on_any_window, "MPI_Win_set_attr", win, |window| {
            set(host, window, keyval, value.addr().cast_signed(), Language::C)
        }, win_set_attr |native| (native, keyval, value))
    }

    /// Deletes an attribute (MPI-4.1 §7.7.3): calls the delete callback, then removes the
    /// attribute. An attribute that is not set is no error. Errors: MPI_ERR_WIN, MPI_ERR_KEYVAL for
    /// an unknown keyval, and the code of a delete callback that fails, in which case the attribute
    /// stays.
    MPI_Win_delete_attr PMPI_Win_delete_attr (win: MPI_Win, keyval: c_int) {
        serve!(host, on_any_window, "MPI_Win_delete_attr", win, |window| {
            match window.attributes.find(keyval) {
                Some(attribute) => delete(host, window, &attribute),
                None => attributes::delete_of(host, keyval).map(drop),
            }
        }, win_delete_attr |native| (native, keyval))
    }

    /// Creates a keyval for attributes of windows (MPI-4.1 §7.7.3). The host MPI assigns the
    /// number, with callbacks that do nothing; libfompi records the delete callback and its state,
    /// because it must be called with libfompi's window handle. Windows are never duplicated, so
    /// the copy callback is not called. Errors: MPI_ERR_ARG for a null pointer, or those of the
    /// host MPI.
    MPI_Win_create_keyval PMPI_Win_create_keyval (
        copy: *mut MPI_Win_copy_attr_function, delete: *mut MPI_Win_delete_attr_function,
        keyval: *mut c_int, extra: *mut c_void,
    ) {
        let host = Host::get();
        if Config::get().disable {
            // SAFETY: the caller's arguments, passed on unchanged.
            return unsafe { (host.call.win_create_keyval)(copy, delete, keyval, extra) };
        }
        let (function, extra) = (delete.addr(), extra.addr());
        // SAFETY: the caller's pointer.
        unsafe { create(host, Delete { function, extra, calling: Calling::C }, keyval) }
    }

    /// Frees a keyval (MPI-4.1 §7.7.3) and stores MPI_KEYVAL_INVALID. Attributes of the keyval stay
    /// on their windows, and its callback stays until the last of them is deleted. Errors:
    /// MPI_ERR_KEYVAL for an unknown keyval, MPI_ERR_ARG for a null pointer.
    MPI_Win_free_keyval PMPI_Win_free_keyval (keyval: *mut c_int) {
        let host = Host::get();
        if Config::get().disable {
            // SAFETY: the caller's argument, passed on unchanged.
            return unsafe { (host.call.win_free_keyval)(keyval) };
        }
        if keyval.is_null() {
            let error = Error::Wrong(&messages::NULL_KEYVAL);
            return raise_alone("MPI_Win_free_keyval", host, error);
        }
        // SAFETY: the caller's pointer.
        if let Err(error) = attributes::free(host, unsafe { *keyval }) {
            return raise_alone("MPI_Win_free_keyval", host, error);
        }
        // SAFETY: the caller's pointer.
        unsafe { keyval.write(host.constants.keyval_invalid) };
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_gets_the_address_of_an_integer_of_fortran() {
        let attribute = |value, language| Arc::new(Attribute { keyval: 7, value, language });
        let (pointer, integer) = (attribute(0x1000, Language::C), attribute(-5, Language::Fortran));
        assert_eq!(AttributeValue::from(&pointer).pointer(), 0x1000);
        assert_eq!(AttributeValue::from(&pointer).integer(), 0x1000);
        assert_eq!(AttributeValue::from(&integer).integer(), -5);
        assert_eq!(AttributeValue::from(&integer).pointer(), (&raw const integer.value).addr());
    }

    #[test]
    fn a_callback_is_called_in_its_language() {
        unsafe extern "C-unwind" fn in_c(
            win: usize,
            keyval: c_int,
            value: usize,
            extra: usize,
        ) -> c_int {
            if (win, keyval, value, extra) == (0x2000_0001, 7, 70, 700) { 11 } else { -1 }
        }
        unsafe extern "C-unwind" fn in_fortran(
            win: *mut MPI_Fint,
            keyval: *mut MPI_Fint,
            value: *mut MPI_Aint,
            extra: *mut MPI_Aint,
            error: *mut MPI_Fint,
        ) {
            // SAFETY: the caller's variables.
            let got = unsafe { (*win, *keyval, *value, *extra) };
            // SAFETY: the caller's variable.
            unsafe { *error = if got == (0x2000_0001, 7, 70, 700) { 12 } else { -1 } };
        }
        let attribute = Arc::new(Attribute { keyval: 7, value: 70, language: Language::C });
        for (function, calling, answer) in [
            (in_c as *const () as usize, Calling::C, 11),
            (in_fortran as *const () as usize, Calling::Fortran, 12),
            (0, Calling::C, 0),
        ] {
            let callback = Delete { function, extra: 700, calling };
            assert_eq!(call(callback, 0x2000_0001, &attribute), answer);
        }
    }
}
