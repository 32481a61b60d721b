//! Common parts of the run-time libraries of GPUs: kinds of memory, directions of a copy, functions
//! that are found by name, the answer that means success.

use crate::dl::Library;
use core::ffi::{CStr, c_int};

/// Where memory is, as a library knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// of the host; the library does not know it
    Host,
    /// of the host, and allocated or registered for a GPU
    Pinned,
    /// of a GPU, or managed by the library, which may move it
    Device,
}

/// The way of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyDirection {
    /// from memory of a GPU
    ToHost,
    /// to memory of a GPU
    ToDevice,
}

/// Returns a function of a library, if it has it.
///
/// # Safety
/// `F` is the type of a function pointer, that of the function of this name.
pub unsafe fn function<F: Copy>(library: Library, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = library.symbol(name);
    // SAFETY: the address of a function, of the type that the caller has promised.
    (address != 0).then(|| unsafe { core::mem::transmute_copy::<usize, F>(&address) })
}

/// The answer of a call that found no fault.
pub const SUCCESS: c_int = 0;
