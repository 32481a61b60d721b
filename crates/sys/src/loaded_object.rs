//! The program and the loaded libraries, as the loader describes them: their tables of symbols,
//! names and relocations. `dl` finds symbols by name.

use super::dl::{self, Library};
use super::page_bytes;
use crate::number::Number;
use core::ffi::{CStr, c_char};
use core::ptr::with_exposed_provenance;
use std::ffi::CString;

const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_STRSZ: u64 = 10;
const DT_JMPREL: u64 = 23;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// A library, or the program.
pub(super) struct Object {
    /// its path, which the loader keeps; empty for the program
    pub path: *const c_char,
    /// what is added to its addresses
    pub base: u64,
    /// its first address, and one past its last one
    range: (u64, u64),
    /// what is read-only after it was loaded
    pub read_only: (u64, u64),
    /// its table of symbols
    pub symbols: u64,
    /// the names of symbols: address and bytes
    pub strings: (u64, u64),
    /// symbols before those that it has itself
    pub foreign: u64,
    /// its tables of relocations: address and bytes
    pub tables: [(u64, u64); 2],
}

/// Reads a value of a loaded object.
///
/// # Safety
/// There is one at that address.
pub(super) unsafe fn read<T: Copy>(address: u64) -> T {
    // SAFETY: guaranteed by the caller.
    unsafe { with_exposed_provenance::<T>(address.to_usize()).read_unaligned() }
}

impl Object {
    /// # Safety
    /// The loader's description of an object that is loaded.
    pub unsafe fn of(info: &libc::dl_phdr_info) -> Option<Object> {
        let base = info.dlpi_addr;
        let mut object = Object {
            path: info.dlpi_name,
            base,
            range: (u64::MAX, 0),
            read_only: (0, 0),
            symbols: 0,
            strings: (0, 0),
            foreign: 0,
            tables: [(0, 0); 2],
        };
        let mut dynamic = 0;
        for at in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: the number of them.
            let part = unsafe { *info.dlpi_phdr.add(at) };
            let (first, end) = (base + part.p_vaddr, base + part.p_vaddr + part.p_memsz);
            match part.p_type {
                libc::PT_LOAD => {
                    object.range = (object.range.0.min(first), object.range.1.max(end));
                }
                libc::PT_DYNAMIC => dynamic = first,
                libc::PT_GNU_RELRO => {
                    object.read_only =
                        (first / page_bytes() * page_bytes(), end / page_bytes() * page_bytes());
                }
                _ => {}
            }
        }
        // SAFETY: the dynamic section of a loaded object.
        (dynamic != 0 && unsafe { object.read_dynamic(dynamic) }).then_some(object)
    }

    /// Returns false if something is missing.
    ///
    /// # Safety
    /// Its dynamic section is at that address.
    unsafe fn read_dynamic(&mut self, mut at: u64) -> bool {
        let (base, range, mut hash) = (self.base, self.range, 0);
        // The C library has made addresses of offsets, but for the kernel's own object.
        let address = |value: u64| if value < range.0 { base + value } else { value };
        loop {
            // SAFETY: the list ends with a zero.
            let [tag, value] = unsafe { read::<[u64; 2]>(at) };
            match tag {
                0 => break,
                DT_STRTAB => self.strings.0 = address(value),
                DT_STRSZ => self.strings.1 = value,
                DT_SYMTAB => self.symbols = address(value),
                DT_RELA => self.tables[0].0 = address(value),
                DT_RELASZ => self.tables[0].1 = value,
                DT_JMPREL => self.tables[1].0 = address(value),
                DT_PLTRELSZ => self.tables[1].1 = value,
                DT_GNU_HASH => hash = address(value),
                _ => {}
            }
            at += 16;
        }
        if hash != 0 {
            // SAFETY: the head of the table: buckets, and the first symbol that is in it.
            self.foreign = unsafe { read::<[u32; 2]>(hash) }[1].into();
        }
        self.symbols != 0 && self.strings.0 != 0
    }

    /// Whether an address is one of its own.
    pub fn holds(&self, address: u64) -> bool {
        (self.range.0..self.range.1).contains(&address)
    }

    /// Whether a name in its tables contains one of `parts`.
    ///
    /// # Safety
    /// The object is loaded.
    unsafe fn names_one_of(&self, parts: &[&CStr]) -> bool {
        let names = with_exposed_provenance(self.strings.0.to_usize());
        parts.iter().map(|part| part.to_bytes()).any(|part| {
            let (bytes, part_bytes) = (self.strings.1.to_usize(), part.len());
            // SAFETY: the table and its bytes, which do not change, and a string.
            !unsafe { libc::memmem(names, bytes, part.as_ptr().cast(), part_bytes) }.is_null()
        })
    }
}

/// An object that names a function.
pub struct Naming {
    path: CString,
    object: Object,
}

impl Naming {
    /// Whether it defines one of these functions.
    pub fn defines_one_of(&self, names: &[&CStr]) -> bool {
        let own = |library: Library, name: &CStr| self.object.holds(library.symbol(name).to_u64());
        Library::at(&self.path).is_some_and(|library| names.iter().any(|name| own(library, name)))
    }
}

/// Returns the program and the libraries that have a name with one of `parts` in it among their
/// dynamic symbols: of functions of their own, and of those that they call.
pub fn all_that_name(parts: &[&CStr]) -> Vec<Naming> {
    let mut found = Vec::new();
    dl::each_object(&mut |info| {
        // SAFETY: the loader keeps the object during the call.
        let object = unsafe { Object::of(info) };
        // SAFETY: as above.
        let object = object.filter(|object| unsafe { object.names_one_of(parts) });
        if let Some(object) = object.filter(|_| !info.dlpi_name.is_null()) {
            // SAFETY: a C string of the loader's.
            let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned();
            found.push(Naming { path, object });
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_by_its_library_and_by_its_callers() {
        let own = [c"pthread_getattr_np"];
        let named = all_that_name(&own);
        let (theirs, callers): (Vec<_>, Vec<_>) =
            named.iter().partition(|object| object.defines_one_of(&own));
        assert_eq!(theirs.len(), 1, "the C library has it");
        assert!(!callers.is_empty(), "the test program calls it");
        assert!(all_that_name(&[c"fompi_no_such_function"]).is_empty());
    }
}
