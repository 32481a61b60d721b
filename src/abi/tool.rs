//! Profiling tools that follow libfompi in the link order: a tool is linked with the program, and
//! libfompi is preloaded. The program's MPI_X then arrives here first and is passed to the tool,
//! which calls PMPI_X, and that arrives here again (MPI-4.1 §15.2.1). Tools that precede libfompi
//! need no support.
//!
//! | state  | meaning                                                    |
//! |--------|------------------------------------------------------------|
//! | [`NONE`]   | no tool follows: all functions are libfompi's own          |
//! | [`SOME`]   | some functions are a tool's, or all are passed on; each resolves its own |
//! | [`UNKNOWN`] | not determined yet                                        |

use super::pass_through;
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
    // Relaxed: constant once it is known; a thread that reads UNKNOWN determines it.
    STATE.load(Ordering::Relaxed) != NONE
}

/// The tool's function that one function of libfompi passes its calls to.
pub struct ToolFunction {
    name: &'static CStr,
    /// its address; 1: not resolved yet; 0: there is none
    address: AtomicUsize,
}

const UNRESOLVED: usize = 1;

impl ToolFunction {
    /// Creates the entry for the function `name`, whose address is not resolved yet.
    pub const fn new(name: &'static CStr) -> ToolFunction {
        ToolFunction { name, address: AtomicUsize::new(UNRESOLVED) }
    }

    /// Returns the address of the tool's function of this name, if it has one; that of the MPI's
    /// function in pass-through mode.
    #[cold]
    pub fn find(&self) -> Option<usize> {
        if STATE.load(Ordering::Relaxed) == UNKNOWN {
            let state = if pass_through::unserved_host().is_some() || any() { SOME } else { NONE };
            STATE.store(state, Ordering::Relaxed);
            if state == NONE {
                Host::get().no_tool_is_behind();
                registry::no_tool_is_behind();
            }
        }
        let mut address = self.address.load(Ordering::Relaxed);
        if address == UNRESOLVED {
            address = match pass_through::unserved_host() {
                Some(unserved) => pass_through::function(unserved, self.name),
                None => of_tool(self.name),
            };
            self.address.store(address, Ordering::Relaxed);
        }
        (address != 0).then_some(address)
    }
}

/// Whether a tool has any function that libfompi exports.
fn any() -> bool {
    let names = include_str!("exported.txt").lines().filter(|name| name.starts_with("MPI_"));
    names.filter_map(|name| CString::new(name).ok()).any(|name| of_tool(&name) != 0)
}

/// Returns the function `name` of a library behind libfompi that is not an MPI, or 0 if there is
/// none. An MPI also has PMPI functions. Determines the host MPI if it is not known yet, because a
/// tool calls it in any case.
fn of_tool(name: &CStr) -> usize {
    let address = dl::next_symbol(name);
    if address == 0 || address == Host::get().library.symbol(name) {
        return 0;
    }
    let profiled = [b"P", name.to_bytes()].concat();
    let Ok(profiled) = CString::new(profiled) else { return 0 };
    if dl::object_defines(address, &profiled) { 0 } else { address }
}
