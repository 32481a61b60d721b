//! The slots by which the loaded libraries and the program call a function of another library (the
//! entries of their global offset tables), and a change of them. So this library comes before a
//! function without a symbol of that name: other libraries look the name up to patch what they find
//! (UCX: madvise), and must find the C library's.
//!
//! Not for calls of a library to itself, for pointers to functions in tables, nor for the slots of
//! libraries that are loaded later.

#![allow(clippy::missing_safety_doc)] // callbacks: called by the C library

use crate::loaded_object::{Object, read};
use crate::number::Number;
use crate::sync::{AtomicUsize, Ordering};
use crate::{dl, page_bytes};
use core::ffi::CStr;
use core::ptr::with_exposed_provenance;

/// Relocations by which a slot gets the address of a function: of a call, of a pointer.
#[cfg(target_arch = "x86_64")]
const OF_FUNCTIONS: [u32; 2] = [7, 6];
/// The same.
#[cfg(target_arch = "aarch64")]
const OF_FUNCTIONS: [u32; 2] = [1026, 1025];
/// No other processor is known.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OF_FUNCTIONS: [u32; 0] = [];

/// A relocation with an addend.
#[repr(C)]
#[derive(Clone, Copy)]
struct Rela {
    offset: u64,
    info: u64,
    addend: i64,
}

/// A symbol.
#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

impl Object {
    /// Whether a symbol is a function of that name in another library.
    ///
    /// # Safety
    /// The object is loaded, and has a symbol of that number.
    unsafe fn is_named(&self, number: u64, name: &CStr) -> bool {
        // SAFETY: a symbol of the table, and its name, which ends with a zero.
        unsafe {
            let symbol = read::<Symbol>(self.symbols + number * 24);
            let text = self.strings.0 + u64::from(symbol.name);
            symbol.section == 0
                && read::<u8>(text) == name.to_bytes()[0]
                && CStr::from_ptr(with_exposed_provenance(text.to_usize())) == name
        }
    }

    /// Shows all slots of a function.
    ///
    /// # Safety
    /// The object is loaded.
    unsafe fn slots(&self, name: &CStr, mut show: impl FnMut(u64)) {
        // SAFETY: the object has more symbols than these.
        let is_named = |number| unsafe { self.is_named(number, name) };
        // Objects have fewer symbols than relocations. Without symbols of its own an object does
        // not tell how many others it has.
        if self.foreign > 1 && !(1..self.foreign).any(is_named) {
            return;
        }
        for (table, bytes) in self.tables {
            for at in (0..bytes).step_by(size_of::<Rela>()) {
                // SAFETY: an entry of the table.
                let entry = unsafe { read::<Rela>(table + at) };
                let (number, kind) = (entry.info >> 32, (entry.info & 0xffff_ffff).to_u32());
                if number != 0 && OF_FUNCTIONS.contains(&kind) && is_named(number) {
                    show(self.base + entry.offset);
                }
            }
        }
    }

    /// Stores an address in a slot.
    ///
    /// # Safety
    /// A slot of this object.
    unsafe fn store(&self, slot: u64, value: usize) {
        let page = slot / page_bytes() * page_bytes();
        let is_read_only = (self.read_only.0..self.read_only.1).contains(&slot);
        // SAFETY: bare system calls on a page of the table; threads may read it at any time.
        let protect = |rights: i32| unsafe {
            libc::syscall(libc::SYS_mprotect, page, page_bytes().to_usize(), rights) == 0
        };
        if is_read_only && !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return;
        }
        // SAFETY: an aligned word, which other threads read as one.
        let word = unsafe {
            AtomicUsize::from_ptr(core::ptr::with_exposed_provenance_mut(slot.to_usize()))
        };
        // Release: what `begin` has stored comes before the first call.
        word.store(value, Ordering::Release);
        if is_read_only {
            protect(libc::PROT_READ);
        }
    }
}

/// Shows all slots of a function of that name, with their objects, but not those of this library.
fn each_slot(name: &CStr, show: &mut dyn FnMut(&Object, u64)) {
    dl::each_object(&mut |info| {
        // SAFETY: the loader keeps the object during the call.
        let object = unsafe { Object::of(info) };
        let is_other = |object: &Object| !object.holds((each_slot as *const ()).addr().to_u64());
        if let Some(object) = object.filter(is_other) {
            // SAFETY: as above.
            unsafe { object.slots(name, |slot| show(&object, slot)) };
        }
    });
}

/// Returns the file names of the objects whose calls of the function `name` lead to `function`, in
/// load order. The program itself has an empty name.
pub fn callers_of(name: &CStr, function: usize) -> Vec<String> {
    let mut callers = Vec::new();
    each_slot(name, &mut |object, slot| {
        // SAFETY: a slot of a loaded object.
        if unsafe { read::<usize>(slot) } == function {
            // SAFETY: the loader keeps the object and its path during the visit.
            let path = (!object.path.is_null()).then(|| unsafe { CStr::from_ptr(object.path) });
            callers.push(path.map_or("", dl::file_name).to_owned());
        }
    });
    callers
}

/// Makes all loaded objects call `to` for the function `name`, but this library, which has `to`.
/// `begin` gets the address of the function that they have called so far, before the change; if
/// some call another function of this name, these go on with it. Allocates nothing.
///
/// # Safety
/// `to` is a function of the type of that name.
pub unsafe fn redirect(name: &CStr, to: usize, mut begin: impl FnMut(usize)) {
    // Mostly they call the function that the name stands for; otherwise search for another one.
    let mut next = dl::global_symbol(name);
    for _ in 0..2 {
        if next == 0 || next == to {
            return;
        }
        begin(next);
        let (mut changed, mut other) = (false, 0);
        each_slot(name, &mut |object, slot| {
            // SAFETY: a slot of a loaded object.
            let now = unsafe { read::<usize>(slot) };
            // Slots that no call has used yet lead into their own object.
            if now == next || object.holds(now.to_u64()) {
                // SAFETY: guaranteed by the caller.
                unsafe { object.store(slot, to) };
                changed |= now == next;
            } else if now != to {
                other = now;
            }
        });
        next = if changed { 0 } else { other };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In place of a function that only the test program calls.
    unsafe extern "C" fn ours() -> libc::pid_t {
        -77
    }

    #[test]
    fn the_callers_of_a_function_are_named() {
        // Each library has a pointer to it, which the loader fills in at once.
        let (name, no_name) = (c"__cxa_finalize", c"fompi_no_such");
        let function = dl::global_symbol(name);
        let is_library = |caller: &String| caller.starts_with("libgcc_s.so");
        assert!(callers_of(name, function).iter().any(is_library));
        assert!(callers_of(name, function + 1).is_empty());
        assert!(callers_of(no_name, function).is_empty());
    }

    #[test]
    fn calls_of_other_libraries_are_redirected() {
        let name = c"malloc";
        let (mut slots, mut foreign) = (0, 0);
        each_slot(name, &mut |object, slot| {
            slots += 1;
            // SAFETY: a slot of a loaded object.
            foreign += u32::from(!object.holds(unsafe { read::<u64>(slot) }));
        });
        assert!(slots > 0 && foreign <= slots, "the C library calls its malloc by a slot");
        let mut began = false;
        // SAFETY: no library has a function of that name, so nothing changes.
        unsafe { redirect(c"fompi_no_such", ours as *const () as usize, |_| began = true) };
        assert!(!began);
    }
}
