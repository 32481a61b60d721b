//! Attributes that a program keeps with windows (MPI-4.1 §7.7.3): the keyvals that it made, and the
//! attributes of each window. This file calls no callbacks: `abi` calls them between a lookup and a
//! change, while no lock is held, because a callback may itself look up or change attributes.
//! Invariant: a keyval lives until the program has freed it and no window has an attribute of it.

use crate::error::{Error, Result};
use crate::messages;
use crate::mpi::Host;
use core::ffi::c_int;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The calling sequence of a delete callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calling {
    /// as a function of C
    C,
    /// as a subroutine of Fortran
    Fortran,
    /// by this function of MPICH's bindings, which knows the language
    Proxy(usize),
}

/// A delete callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delete {
    /// the program's function, or null
    pub function: usize,
    /// the program's extra state
    pub extra: usize,
    /// how it is called
    pub calling: Calling,
}

/// A keyval that the program made. Its number is that of a keyval of the host MPI, which does not
/// use the number for another keyval as long as this one exists.
struct Keyval {
    delete: Delete,
    /// MPI_Win_free_keyval was called
    freed: bool,
    /// attributes that windows have of it
    uses: u32,
}

impl Keyval {
    fn is_over(&self) -> bool {
        self.freed && self.uses == 0
    }
}

static KEYVALS: Mutex<BTreeMap<c_int, Keyval>> = Mutex::new(BTreeMap::new());

/// Returns the error for an unknown keyval.
pub fn unknown(keyval: c_int) -> Error {
    Error::Argument(&messages::KEYVAL, i64::from(keyval))
}

/// Does `change` with a keyval. If the keyval is no longer used afterwards, frees it, here and in
/// the host MPI.
fn with<R>(host: &Host, keyval: c_int, change: impl FnOnce(&mut Keyval) -> R) -> Result<R> {
    let (result, over) = {
        let mut keyvals = KEYVALS.lock();
        let entry = keyvals.get_mut(&keyval).ok_or_else(|| unknown(keyval))?;
        let result = change(entry);
        let over = entry.is_over();
        if over {
            keyvals.remove(&keyval);
        }
        (result, over)
    };
    if over {
        let mut number = keyval;
        // SAFETY: a keyval of the host MPI that is not used any more.
        crate::mpi::comm::check(unsafe { (host.call.win_free_keyval)(&mut number) })?;
    }
    Ok(result)
}

/// Adds a keyval, whose number the host MPI has assigned.
pub fn add(keyval: c_int, delete: Delete) {
    KEYVALS.lock().insert(keyval, Keyval { delete, freed: false, uses: 0 });
}

/// Changes how a keyval's callback is called. Returns false if the program has no such keyval.
pub fn set_calling(keyval: c_int, calling: Calling) -> bool {
    let mut keyvals = KEYVALS.lock();
    keyvals.get_mut(&keyval).map(|entry| entry.delete.calling = calling).is_some()
}

/// Returns the delete callback of a keyval.
pub fn delete_of(host: &Host, keyval: c_int) -> Result<Delete> {
    with(host, keyval, |entry| entry.delete)
}

/// Counts one more attribute of a keyval.
pub fn keep(host: &Host, keyval: c_int) -> Result<()> {
    with(host, keyval, |entry| entry.uses += 1)
}

/// Counts one attribute of a keyval less.
pub fn release(host: &Host, keyval: c_int) -> Result<()> {
    with(host, keyval, |entry| entry.uses -= 1)
}

/// Ends the program's own use of a keyval. A second call has no effect while attributes keep the
/// keyval: callbacks free their own keyval.
pub fn free(host: &Host, keyval: c_int) -> Result<()> {
    with(host, keyval, |entry| entry.freed = true)
}

/// The language in which an attribute was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C: the value is a pointer
    C,
    /// Fortran: the value is an integer, to which C gets a pointer
    Fortran,
}

/// An attribute of a window. It stays where it is as long as the window has it.
pub struct Attribute {
    /// its keyval
    pub keyval: c_int,
    /// its value
    pub value: isize,
    /// the language that set it
    pub language: Language,
}

/// The attributes of a window, the one that was set last at the end.
#[derive(Default)]
pub struct Attributes(Mutex<Vec<Arc<Attribute>>>);

impl Attributes {
    /// Returns the attribute of a keyval.
    pub fn find(&self, keyval: c_int) -> Option<Arc<Attribute>> {
        self.0.lock().iter().find(|attribute| attribute.keyval == keyval).cloned()
    }

    /// Returns the attribute that was set last.
    pub fn last(&self) -> Option<Arc<Attribute>> {
        self.0.lock().last().cloned()
    }

    /// Adds an attribute whose keyval counts it already.
    pub fn push(&self, attribute: Attribute) {
        self.0.lock().push(Arc::new(attribute));
    }

    /// Removes an attribute. Returns false if another thread, or its callback, has already removed
    /// it.
    pub fn remove(&self, attribute: &Arc<Attribute>) -> bool {
        let mut all = self.0.lock();
        let place = all.iter().position(|other| Arc::ptr_eq(other, attribute));
        place.map(|place| all.remove(place)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_attribute_is_the_one_set_last() {
        let attributes = Attributes::default();
        for (keyval, value) in [(7, 70), (3, 30), (5, 50)] {
            attributes.push(Attribute { keyval, value, language: Language::C });
        }
        assert_eq!(attributes.find(3).unwrap().value, 30);
        let mut order = Vec::new();
        while let Some(last) = attributes.last() {
            order.push(last.keyval);
            assert!(attributes.remove(&last));
            assert!(!attributes.remove(&last));
        }
        assert_eq!(order, [5, 3, 7]);
        assert!(attributes.find(3).is_none());
    }

    #[test]
    fn a_keyval_is_over_when_it_is_freed_and_unused() {
        let delete = Delete { function: 0, extra: 0, calling: Calling::C };
        let is_over = |freed, uses| Keyval { delete, freed, uses }.is_over();
        assert!(is_over(true, 0));
        assert!(!is_over(true, 1));
        assert!(!is_over(false, 0));
    }
}
