//! Common parts of the run-time libraries of GPUs: kinds of memory, directions of a copy, and what
//! each library does.

use core::ffi::{c_int, c_void};
use core::ptr;

/// A context, a stream, a device or another object of a library.
pub type GpuHandle = *mut c_void;

/// The answer of a call that found no fault.
pub const SUCCESS: c_int = 0;

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

impl CopyDirection {
    /// Returns where a copy between memory of the host and of a GPU goes, and where it comes from.
    pub fn ends(self, here: u64, there: u64) -> (u64, u64) {
        match self {
            CopyDirection::ToHost => (here, there),
            CopyDirection::ToDevice => (there, here),
        }
    }

    /// Waits until a copy has arrived that was begun with this answer. One from memory that is not
    /// pinned may still be on its way.
    ///
    /// # Safety
    /// `wait` waits for a stream.
    pub unsafe fn arrived(
        self,
        code: c_int,
        wait: unsafe extern "C" fn(GpuHandle) -> c_int,
    ) -> c_int {
        match (self, code) {
            // SAFETY: the default stream, in which the copy was made.
            (CopyDirection::ToDevice, SUCCESS) => unsafe { wait(ptr::null_mut()) },
            _ => code,
        }
    }
}

/// A library with the functions that are needed here.
pub trait Runtime: Send + Sync {
    /// Returns where the byte at `address` is.
    fn kind(&self, address: u64) -> MemoryKind;

    /// Whether it is known of all memory of the library where it is.
    fn knows_all_memory(&self) -> bool {
        true
    }

    /// Copies `bytes` bytes between `here`, memory of the host, and `there`, memory of a GPU.
    /// Returns the code of an error, or 0.
    ///
    /// # Safety
    /// The bytes on both sides may be read or written, as the direction needs it.
    unsafe fn copy(&self, way: CopyDirection, here: u64, there: u64, bytes: usize) -> c_int;
}
