//! Loaded run-time libraries of GPUs: where memory is, and copies between it and memory of the
//! host. The consequences for windows are in `memory::gpu`. Invariant: nothing here loads a
//! library, or initialises one that the program has not initialised, but HIP, which initialises
//! itself. A library that was found stays loaded.

mod cuda;
mod gpu_calls;
mod hip;
mod level_zero;

use super::dl::{self, Library};
use super::last_error;
use crate::error::{Error, Result};
use core::ptr;
use cuda::Cuda;
pub use gpu_calls::{CopyDirection, MemoryKind};
use hip::Hip;
use level_zero::LevelZero;
use std::ffi::CString;

/// A library with the functions that are needed here.
enum Runtime {
    Cuda(Cuda),
    Hip(Hip),
    LevelZero(LevelZero),
}

/// The names of the libraries begin with these.
const CUDA: &str = "libcuda.so";
const HIP: &str = "libamdhip64.so";
const LEVEL_ZERO: &str = "libze_loader.so";

impl Runtime {
    fn kind(&self, address: u64) -> MemoryKind {
        match self {
            Runtime::Cuda(cuda) => cuda.kind(address),
            Runtime::Hip(hip) => hip.kind(address),
            Runtime::LevelZero(zero) => zero.kind(address),
        }
    }

    /// Copies `bytes` bytes between `here`, memory of the host, and `there`, memory of a GPU.
    ///
    /// # Safety
    /// The bytes on both sides may be read or written, as the direction needs it.
    unsafe fn copy(&self, way: CopyDirection, here: u64, there: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        let (call, code) = unsafe {
            match self {
                Runtime::Cuda(cuda) => ("cuMemcpy", cuda.copy(way, here, there, bytes)),
                Runtime::Hip(hip) => ("hipMemcpy", hip.copy(way, here, there, bytes)),
                Runtime::LevelZero(zero) => {
                    ("zeCommandListAppendMemoryCopy", zero.copy(way, here, there, bytes))
                }
            }
        };
        if code == 0 { Ok(()) } else { Err(Error::Runtime { call, code }) }
    }
}

/// A library that is loaded, with its file name.
pub struct GpuLibrary {
    library: Library,
    name: String,
}

/// Returns the libraries that are loaded.
pub fn loaded() -> Vec<GpuLibrary> {
    let found = |path: &CString| {
        let name = dl::file_name(path);
        let library = is_name(name).then(|| Library::at(path)).flatten()?;
        Some(GpuLibrary { library, name: name.to_owned() })
    };
    dl::loaded().iter().filter_map(found).collect()
}

/// The functions of libraries.
pub struct Runtimes {
    all: Vec<Runtime>,
    libraries: Vec<GpuLibrary>,
    /// whether one lacks a function
    lacks_functions: bool,
}

impl Runtimes {
    /// Looks up the functions of libraries.
    pub fn of(libraries: Vec<GpuLibrary>) -> Runtimes {
        let runtime = |GpuLibrary { library, name }: &GpuLibrary| match name {
            name if name.starts_with(CUDA) => Cuda::of(*library).map(Runtime::Cuda),
            name if name.starts_with(HIP) => Hip::of(*library, name).map(Runtime::Hip),
            _ => LevelZero::of(*library).map(Runtime::LevelZero),
        };
        let all: Vec<Runtime> = libraries.iter().filter_map(runtime).collect();
        let lacks_functions = all.len() < libraries.len();
        Runtimes { all, libraries, lacks_functions }
    }

    /// Whether these are the functions of these libraries.
    pub fn are_of(&self, libraries: &[GpuLibrary]) -> bool {
        let handles = |all: &[GpuLibrary]| all.iter().map(|one| one.library).collect::<Vec<_>>();
        handles(&self.libraries) == handles(libraries)
    }

    /// Whether it is known of all memory where it is, and all of it can be copied.
    pub fn know_all_memory(&self) -> bool {
        let knows = |runtime: &Runtime| match runtime {
            Runtime::Cuda(_) | Runtime::Hip(_) => true,
            Runtime::LevelZero(zero) => zero.knows_other_contexts(),
        };
        !self.lacks_functions && self.all.iter().all(knows)
    }

    /// Returns where the byte at `address` is.
    pub fn kind(&self, address: u64) -> MemoryKind {
        let kinds = self.all.iter().map(|runtime| runtime.kind(address));
        kinds.fold(
            MemoryKind::Host,
            |found, kind| if found == MemoryKind::Host { kind } else { found },
        )
    }

    /// Copies `bytes` bytes between `here`, memory of the host, and `there`, memory of a GPU.
    ///
    /// # Safety
    /// The bytes on both sides may be read or written, as the direction needs it.
    pub unsafe fn copy(
        &self,
        way: CopyDirection,
        here: u64,
        there: u64,
        bytes: usize,
    ) -> Result<()> {
        let owner = self.all.iter().find(|runtime| runtime.kind(there) == MemoryKind::Device);
        match owner {
            // SAFETY: the caller's promise.
            Some(runtime) => unsafe { runtime.copy(way, here, there, bytes) },
            None => Err(Error::OriginFault { address: there }),
        }
    }
}

/// Whether a file name is that of a run-time library of a GPU.
fn is_name(name: &str) -> bool {
    [CUDA, HIP, LEVEL_ZERO].iter().any(|runtime| name.starts_with(runtime))
}

/// Memory of the host for a copy. Pages cost when they are touched.
pub struct HostPages {
    base: *mut libc::c_void,
    bytes: usize,
}

impl HostPages {
    /// Takes `bytes` bytes.
    pub fn new(bytes: usize) -> Result<HostPages> {
        let bytes = bytes.max(1);
        let (rights, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: new memory at any address.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, kind, -1, 0) };
        if base == libc::MAP_FAILED {
            Err(last_error("mmap"))
        } else {
            Ok(HostPages { base, bytes })
        }
    }

    /// Returns the address of its first byte, a multiple of the size of a page.
    pub fn base(&self) -> *mut u8 {
        self.base.cast()
    }
}

impl Drop for HostPages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and not used any more.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_libraries_are_known() {
        for name in ["libcuda.so", "libcuda.so.1", "libcuda.so.550.54.15", "libamdhip64.so.6"] {
            assert!(is_name(name), "{name}");
        }
        assert!(is_name("libze_loader.so.1"));
        for name in ["libcudart.so.12", "libcudadebugger.so.1", "libze_intel_gpu.so.1", ""] {
            assert!(!is_name(name), "{name}");
        }
        assert!(loaded().is_empty());
    }

    #[test]
    fn pages_for_a_copy_may_be_more_than_memory() {
        let pages = HostPages::new(1 << 40).unwrap();
        // SAFETY: their first and their last byte.
        unsafe {
            pages.base().write(1);
            pages.base().add((1 << 40) - 1).write(2);
        }
    }
}
