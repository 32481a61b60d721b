//! The host MPI: its family, and its functions, which the first call looks up.
//!
//! The functions are looked up in the library itself (`dlsym` on its handle), by their PMPI names:
//! so this library calls neither its own symbols nor a profiler's from here. Handles travel as
//! register-sized integers in every ABI; MPICH's are 32 bits wide and are masked on entry, because
//! callers leave garbage above them.

use super::constants::{Constants, MPICH, OPENMPI_INTEGERS, STANDARD};
use super::family::{self, Named};
use super::functions::Functions;
use super::handle::ReusableRequest;
pub use super::handle::{Abi, Handle, Status};
use super::table::Tables;
use crate::error::Class;
use crate::messages::{self, Line, filled};
use crate::number::Number;
use crate::sync::{AtomicPtr, Ordering};
use crate::sys::dl::{self, Library};
use crate::sys::{got_slots, process};
use core::ffi::CStr;
use core::mem::transmute_copy;
use core::ptr;
use std::sync::OnceLock;

/// The host MPI.
pub struct Host {
    /// its binary interface
    pub abi: Abi,
    /// its constants
    pub constants: Constants,
    /// predefined datatypes and operations by handle
    pub tables: Tables,
    /// its functions
    pub call: Functions,
    /// the library itself, for functions that only one family has
    pub library: Library,
    /// whether it is Intel MPI
    pub is_intel: bool,
    /// its handle of a complete request
    pub completed: ReusableRequest,
    /// all bits that a handle may have
    mask: usize,
}

/// An MPI that this library does not serve at all, or not in this program: all calls are passed on
/// to it.
pub struct Unserved {
    /// the MPI
    pub library: Library,
    /// its name, and the reason why it is not served, for messages
    pub why: String,
    /// its number of MPI_ERR_UNSUPPORTED_OPERATION, if its binary interface is known
    pub unsupported: Option<i32>,
}

/// The reason why there is no [`Host`].
enum NoHost {
    /// no MPI is loaded that can carry out the call
    NoMpi,
    /// the MPI itself can carry out the call
    Unserved(Unserved),
}

const BEHIND: &str = "comes before libfompi.so in this program, so only some of its calls reach \
    libfompi (link -lfompi before the MPI, or start the program with fompirun)";

static HOST: AtomicPtr<Host> = AtomicPtr::new(ptr::null_mut());
/// The value of [`HOST`], once it is known that no profiling tool comes after this library.
static HOST_OF_MPI: AtomicPtr<Host> = AtomicPtr::new(ptr::null_mut());

/// The one of its two names by which a function was called. As a number, its place behind the first
/// in a table with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryName {
    /// PMPI_X
    Pmpi,
    /// MPI_X, which a profiling tool may have too
    Mpi,
}

impl Host {
    /// Returns the host MPI. Ends the process if none is loaded: an MPI function was called in a
    /// program without MPI, and no error handler exists.
    #[inline]
    pub fn get() -> &'static Host {
        // Acquire: pairs with the Release in `unserved`.
        let host = HOST.load(Ordering::Acquire);
        if host.is_null() {
            return Host::find();
        }
        // SAFETY: made by `unserved` from a leaked box, never freed.
        unsafe { &*host }
    }

    /// Returns the host MPI, if it was found before, and if calls by this name are known to be for
    /// this library.
    #[inline(always)]
    pub fn known(entry: EntryName) -> Option<&'static Host> {
        let host = match entry {
            EntryName::Mpi => &HOST_OF_MPI,
            EntryName::Pmpi => &HOST,
        };
        // Acquire: pairs with the Release in `unserved` and in `no_tool_is_behind`.
        let host = host.load(Ordering::Acquire);
        // SAFETY: null, or made by `unserved` from a leaked box and never freed.
        unsafe { host.as_ref() }
    }

    /// Records that calls by their MPI names are for this library, too.
    pub fn no_tool_is_behind(&'static self) {
        // Release: pairs with the Acquire in `known`.
        HOST_OF_MPI.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
    }

    #[cold]
    fn find() -> &'static Host {
        if let Some(unserved) = Host::unserved() {
            end(&filled!(messages::CALLED_UNSERVED; why = unserved.why).line());
        }
        // Acquire: pairs with the Release in `unserved`.
        let host = HOST.load(Ordering::Acquire);
        // SAFETY: made there from a leaked box, never freed.
        unsafe { &*host }
    }

    /// Returns the host MPI if this library does not serve it. Finds the MPI at the first call.
    #[cold]
    pub fn unserved() -> Option<&'static Unserved> {
        static FOUND: OnceLock<Option<Unserved>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            process::end_at_panics(); // every call comes here before it does anything
            match Host::load() {
                Ok(host) => {
                    // Release: pairs with the Acquire in `get` and `known`.
                    HOST.store(Box::into_raw(Box::new(host)), Ordering::Release);
                    None
                }
                Err(NoHost::Unserved(unserved)) => Some(unserved),
                Err(NoHost::NoMpi) => end(&filled!(messages::NO_MPI).line()),
            }
        });
        found.as_ref()
    }

    /// Returns the file name of the MPI that is loaded, and in which order calls find its functions
    /// and ours. Calls no function of it, so it may be used before the MPI's own constructors have
    /// run.
    pub fn seen() -> Option<(String, SearchOrder)> {
        let (library, name) = library()?;
        Some((name, search_order(library)))
    }

    fn load() -> Result<Host, NoHost> {
        let (library, name) = library().ok_or(NoHost::NoMpi)?;
        let named = Named::of(library, &name);
        let unsupported = named.abi.map(unsupported);
        let unserved = |why: String| NoHost::Unserved(Unserved { library, why, unsupported });
        let Some(abi) = named.abi else {
            let line = if named.line.is_empty() { "nothing" } else { &named.line };
            let served = family::SERVED;
            return Err(unserved(format!("{name} names itself `{line:.60}`, none of {served}")));
        };
        if search_order(library) != SearchOrder::InFront {
            return Err(unserved(format!("{name} {BEHIND}")));
        }
        let call = Functions::load(|symbol| library.symbol(symbol)).map_err(|symbol| {
            unserved(format!("{name}, `{:.60}`, has no {}", named.line, symbol.to_string_lossy()))
        })?;
        let resolve = |symbol: &'static CStr| match dl::global_symbol(symbol) {
            0 => library.symbol(symbol),
            address => address,
        };
        let is_intel = named.is_intel();
        let constants = Constants::of(abi, is_intel, resolve);
        let tables = Tables::new(abi, &constants, resolve);
        let mask = if abi == Abi::Mpich { 0xffff_ffff } else { usize::MAX };
        let completed = ReusableRequest::unknown();
        Ok(Host { abi, constants, tables, call, library, is_intel, completed, mask })
    }

    /// Returns a handle as the caller passed it, without the garbage above it in its register.
    #[inline(always)]
    pub fn handle(&self, raw: usize) -> Handle {
        raw & self.mask
    }

    /// Stores a handle at an address of the user.
    ///
    /// # Safety
    /// `at` points to a handle of this ABI.
    pub unsafe fn store(&self, at: *mut usize, handle: Handle) {
        match self.abi {
            // SAFETY: handles of this ABI are 32 bits wide.
            Abi::Mpich => unsafe { at.cast::<u32>().write_unaligned(handle.to_u32()) },
            // SAFETY: handles of these ABIs are as wide as a pointer.
            _ => unsafe { at.write_unaligned(handle) },
        }
    }

    /// Loads a handle from an address of the user.
    ///
    /// # Safety
    /// `at` points to a handle of this ABI.
    pub unsafe fn fetch(&self, at: *const usize) -> Handle {
        match self.abi {
            // SAFETY: handles of this ABI are 32 bits wide.
            Abi::Mpich => unsafe { (at.cast::<u32>().read_unaligned()).to_usize() },
            // SAFETY: handles of these ABIs are as wide as a pointer.
            _ => unsafe { at.read_unaligned() },
        }
    }

    /// Returns a function that only some MPIs have.
    ///
    /// # Safety
    /// `F` is the type of the function pointer that the symbol stands for.
    pub unsafe fn extra<F>(&self, symbol: &CStr) -> Option<F> {
        let address = self.library.symbol(symbol);
        debug_assert_eq!(size_of::<F>(), size_of::<usize>());
        // SAFETY: the caller guarantees the type.
        (address != 0).then(|| unsafe { transmute_copy(&address) })
    }
}

/// Returns the number of MPI_ERR_UNSUPPORTED_OPERATION in an ABI.
fn unsupported(abi: Abi) -> i32 {
    let constants = match abi {
        Abi::Mpich => MPICH,
        Abi::OpenMpi => OPENMPI_INTEGERS,
        Abi::Standard => STANDARD,
    };
    constants.class(Class::Unsupported)
}

/// Ends the process: no error handler exists.
fn end(line: &Line) -> ! {
    line.print();
    std::process::abort();
}

/// The order in which calls find the functions of the MPI and ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchOrder {
    /// ours first
    InFront,
    /// those of the MPI first
    Behind,
    /// those of the MPI, in the library of this name, which was loaded before ours
    Bound(String),
}

/// Returns the order in which calls find the functions of the MPI and ours. Those of the MPI come
/// first if the program is linked with `-lmpi -lfompi`, or loads this library, or a module that is
/// linked with it, while it runs on its MPI (dlopen). Calls of functions that the MPI lacks still
/// reach this library, and so may calls of such a module; neither may make windows with which the
/// MPI's own functions are called later. The first test uses a PMPI name, because tools define MPI
/// names.
fn search_order(library: Library) -> SearchOrder {
    let create = library.symbol(c"PMPI_Win_create");
    if create != 0 && dl::symbol_of_program(c"PMPI_Win_create") == create {
        return SearchOrder::Behind;
    }
    // What is loaded later finds our functions first.
    if !dl::is_loaded_before(create, (search_order as *const ()).addr()) {
        return SearchOrder::InFront;
    }
    let makers = [
        c"MPI_Win_create",
        c"MPI_Win_allocate",
        c"MPI_Win_allocate_shared",
        c"MPI_Win_create_dynamic",
    ];
    let found = makers.map(|maker| (maker, library.symbol(maker))).into_iter();
    let callers = found
        .filter(|(_, function)| *function != 0)
        .flat_map(|(maker, function)| got_slots::callers_of(maker, function));
    // The bindings for Fortran and C++ are libraries of the MPI.
    let mut callers = callers.filter(|caller| !caller.starts_with("libmpi"));
    match callers.next() {
        None => SearchOrder::InFront,
        Some(caller) if caller.is_empty() => SearchOrder::Bound(String::from("the program")),
        Some(caller) => SearchOrder::Bound(caller),
    }
}

/// Returns the loaded MPI library and its file name.
fn library() -> Option<(Library, String)> {
    let rank = |name: &str| match name {
        _ if name.starts_with("libmpi_abi.") => Some(0),
        _ if name.starts_with("libmpi.") || name.starts_with("libmpich.") => Some(1),
        _ if name.starts_with("libmpi") => Some(2),
        _ => None,
    };
    let mut found: Vec<_> = dl::loaded()
        .into_iter()
        .filter_map(|path| {
            let name = dl::file_name(&path).to_owned();
            let library = rank(&name).and_then(|_| Library::at(&path))?;
            let is_mpi = library.symbol(c"PMPI_Comm_size") != 0;
            is_mpi.then(|| (rank(&name), library, name))
        })
        .collect();
    found.sort_by_key(|(rank, ..)| *rank);
    let named = found.into_iter().next().map(|(_, library, name)| (library, name));
    // An MPI with another file name, as MPC's.
    named.or_else(|| dl::library_at(dl::next_symbol(c"PMPI_Comm_size")))
}

const _: () = assert!(MPICH.status_bytes as usize <= size_of::<Status>());
const _: () = assert!(OPENMPI_INTEGERS.status_bytes as usize <= size_of::<Status>());
const _: () = assert!(STANDARD.status_bytes as usize <= size_of::<Status>());
