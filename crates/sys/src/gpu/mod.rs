//! Loaded run-time libraries of GPUs: where memory is, and copies between it and memory of the
//! host. The consequences for windows are in `memory::gpu`. Invariant: nothing here loads a
//! library, or initialises one that the program has not initialised, but HIP, which initialises
//! itself. A library that was found stays loaded.

mod cuda;
mod gpu_calls;
mod hip;
mod level_zero;

use super::dl::{self, Library};
use crate::error::{Error, Result};
pub use gpu_calls::{CopyDirection, MemoryKind};
use gpu_calls::{Runtime, SUCCESS};

/// A library that is known: the begin of its file name, its function that copies, and what looks
/// its functions up.
struct Row {
    file_name: &'static str,
    copy: &'static str,
    open: fn(Library) -> Option<Box<dyn Runtime>>,
}

const ROWS: [Row; 3] = [
    Row { file_name: "libcuda.so", copy: "cuMemcpy", open: cuda::open },
    Row { file_name: "libamdhip64.so", copy: "hipMemcpy", open: hip::open },
    Row {
        file_name: "libze_loader.so",
        copy: "zeCommandListAppendMemoryCopy",
        open: level_zero::open,
    },
];

/// Returns the row of a file name.
fn row_of(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| name.starts_with(row.file_name))
}

/// A library that is loaded.
pub struct GpuLibrary {
    library: Library,
    row: &'static Row,
}

/// Returns the libraries that are loaded.
pub fn loaded() -> Vec<GpuLibrary> {
    let paths = dl::loaded();
    let known = paths.iter().filter_map(|path| row_of(dl::file_name(path)).zip(Library::at(path)));
    known.map(|(row, library)| GpuLibrary { library, row }).collect()
}

/// Libraries with their functions; without them if one is missing.
pub struct Runtimes(Vec<(GpuLibrary, Option<Box<dyn Runtime>>)>);

impl Runtimes {
    /// Looks up the functions of libraries.
    pub fn of(libraries: Vec<GpuLibrary>) -> Runtimes {
        let with_functions = |of: GpuLibrary| {
            let functions = (of.row.open)(of.library);
            (of, functions)
        };
        Runtimes(libraries.into_iter().map(with_functions).collect())
    }

    /// Whether these are the functions of these libraries.
    pub fn are_of(&self, libraries: &[GpuLibrary]) -> bool {
        self.0.iter().map(|(own, _)| own.library).eq(libraries.iter().map(|one| one.library))
    }

    /// Whether it is known of all memory where it is, and all of it can be copied.
    pub fn know_all_memory(&self) -> bool {
        let knows = |runtime: &dyn Runtime| runtime.knows_all_memory();
        self.0.iter().all(|(_, runtime)| runtime.as_deref().is_some_and(knows))
    }

    /// Returns where the byte at `address` is, and the library that knows it.
    fn find(&self, address: u64) -> Option<(MemoryKind, &Row, &dyn Runtime)> {
        self.0.iter().find_map(|(of, runtime)| {
            let runtime = runtime.as_deref()?;
            let kind = Some(runtime.kind(address)).filter(|kind| *kind != MemoryKind::Host)?;
            Some((kind, of.row, runtime))
        })
    }

    /// Returns where the byte at `address` is.
    pub fn kind(&self, address: u64) -> MemoryKind {
        self.find(address).map_or(MemoryKind::Host, |(kind, ..)| kind)
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
        let Some((MemoryKind::Device, row, runtime)) = self.find(there) else {
            return Err(Error::OriginFault { address: there });
        };
        // SAFETY: guaranteed by the caller.
        match unsafe { runtime.copy(way, here, there, bytes) } {
            SUCCESS => Ok(()),
            code => Err(Error::Runtime { call: row.copy, code }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_libraries_are_known() {
        for name in ["libcuda.so", "libcuda.so.1", "libcuda.so.550.54.15", "libamdhip64.so.6"] {
            assert!(row_of(name).is_some(), "{name}");
        }
        assert!(row_of("libze_loader.so.1").is_some());
        for name in ["libcudart.so.12", "libcudadebugger.so.1", "libze_intel_gpu.so.1", ""] {
            assert!(row_of(name).is_none(), "{name}");
        }
        assert!(loaded().is_empty());
    }
}
