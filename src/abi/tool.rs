//! Profiling tools that come behind this library: one that is linked with the program, where this
//! library is preloaded. Then the program's MPI_X arrives here first and has to be passed to the
//! tool, which calls PMPI_X, and that arrives here again (MPI-4.1 §15.2.1). For tools in front
//! there is nothing to do.
//!
//! | state  | meaning                                                    |
//! |--------|------------------------------------------------------------|
//! | [`NONE`]   | no tool is behind: all functions are this library's own    |
//! | [`SOME`]   | some functions are a tool's, or all are passed on; each looks |
//! | [`UNKNOWN`] | no call has looked yet                                    |

use super::aside;
use crate::mpi::Host;
use crate::sync::{AtomicU32, AtomicUsize, Ordering};
use crate::sys::dl;
use crate::window::registry;
use core::ffi::CStr;
use std::ffi::CString;

const NONE: u32 = 0;
const SOME: u32 = 1;
const UNKNOWN: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Whether a function may belong to a tool.
#[inline(always)]
pub fn may_be_behind() -> bool {
    // Relaxed: a constant once it is known; a thread that finds it unknown looks.
    STATE.load(Ordering::Relaxed) != NONE
}

/// The tool's function behind one function of this library.
pub struct ToolFunction {
    name: &'static CStr,
    /// its address; 1: no call has looked; 0: there is none
    address: AtomicUsize,
}

const NOT_LOOKED: usize = 1;

impl ToolFunction {
    /// Creates the entry for the function `name`, whose address no call has looked up yet.
    pub const fn new(name: &'static CStr) -> ToolFunction {
        ToolFunction { name, address: AtomicUsize::new(NOT_LOOKED) }
    }

    /// Returns the address of the tool's function of this name, if it has one; that of the MPI's if
    /// this library stands aside.
    #[cold]
    pub fn find(&self) -> Option<usize> {
        if STATE.load(Ordering::Relaxed) == UNKNOWN {
            let state = if aside::underneath().is_some() || any() { SOME } else { NONE };
            STATE.store(state, Ordering::Relaxed);
            if state == NONE {
                Host::get().no_tool_is_behind();
                registry::no_tool_is_behind();
            }
        }
        let mut address = self.address.load(Ordering::Relaxed);
        if address == NOT_LOOKED {
            address = match aside::underneath() {
                Some(unserved) => aside::function(unserved, self.name),
                None => of_tool(self.name),
            };
            self.address.store(address, Ordering::Relaxed);
        }
        (address != 0).then_some(address)
    }
}

/// Whether a tool has any function that this library exports.
fn any() -> bool {
    let names = include_str!("exported.txt").lines().filter(|name| name.starts_with("MPI_"));
    names.filter_map(|name| CString::new(name).ok()).any(|name| of_tool(&name) != 0)
}

/// Returns the function `name` of a library behind this one that is no MPI, or 0 if there is none.
/// An MPI has PMPI functions too. Finds the host if it is not known yet: a tool calls it anyway.
fn of_tool(name: &CStr) -> usize {
    let address = dl::next_symbol(name);
    if address == 0 || address == Host::get().library.symbol(name) {
        return 0;
    }
    let profiled = [b"P", name.to_bytes()].concat();
    let Ok(profiled) = CString::new(profiled) else { return 0 };
    if dl::has_beside(address, &profiled) { 0 } else { address }
}
