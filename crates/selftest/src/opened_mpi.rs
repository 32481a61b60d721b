//! libfompi and a host MPI, opened at run time: libfompi first and for all libraries, as Python's
//! `import fompi` does, so that the calls of this program reach it. Invariant: calls use the names
//! that programs use (`MPI_Put`), in the search order of the program.

use fompi_base::number::Number;
use fompi_datatype::reduce::{OPS, Op};
use fompi_host::constants::{Constants, PREDEFINED, op_handle};
use fompi_host::family::Named;
use fompi_host::functions::Functions;
use fompi_host::handle::{Abi, Handle};
use fompi_host::host_functions;
use fompi_sys::dl::{self, Library};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

host_functions! {
    /// The functions that only these checks call.
    CheckFunctions
    required {
        init = c"PMPI_Init" (*mut c_void, *mut c_void);
        finalize = c"PMPI_Finalize" ();
        barrier = c"PMPI_Barrier" (Handle);
        group_incl = c"PMPI_Group_incl" (Handle, c_int, *const c_int, *mut Handle);
        type_vector = c"PMPI_Type_vector" (c_int, c_int, c_int, Handle, *mut Handle);
        type_commit = c"PMPI_Type_commit" (*mut Handle);
    }
    optional {}
}

/// An MPI with libfompi in front of it.
pub struct OpenedMpi {
    abi: Abi,
    /// the constants of its ABI
    pub constants: Constants,
    /// its functions, or libfompi's
    pub call: Functions,
    /// more of them
    pub more: CheckFunctions,
    /// the path of its library
    pub library: PathBuf,
    /// the first line that it says of itself
    pub line: String,
    /// the version of libfompi; empty without it
    pub fompi: String,
}

impl OpenedMpi {
    /// Opens libfompi if it is named, unless this process has it, and then the first MPI of
    /// `libraries` that can be opened.
    pub fn open(fompi: Option<&Path>, libraries: &[PathBuf]) -> Result<OpenedMpi, String> {
        let present = dl::loaded().into_iter().find(|path| dl::file_name(path) == "libfompi.so");
        let fompi = match (present, fompi) {
            (Some(path), _) => Some(Library::at(&path).ok_or("libfompi.so is unloaded")?),
            (None, Some(fompi)) => Some(Library::load_for_all(&c_path(fompi)?)?),
            (None, None) => None,
        };
        let mut refusals = Vec::new();
        let found = libraries.iter().find_map(|path| {
            let loaded = c_path(path).and_then(|path| Library::load_for_all(&path));
            loaded.map_err(|why| refusals.push(why)).ok().map(|library| (path.clone(), library))
        });
        let (path, library) = found.ok_or_else(|| {
            format!("no MPI library can be opened; name it with --library: {}", refusals.join("; "))
        })?;
        OpenedMpi::of(fompi, path, library)
    }

    fn of(fompi: Option<Library>, path: PathBuf, library: Library) -> Result<OpenedMpi, String> {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let named = Named::of(library, &file);
        let unknown = || format!("{}: an MPI of an unknown family: {}", path.display(), named.line);
        let abi = named.abi.ok_or_else(unknown)?;
        let find = |symbol: &'static CStr| match dl::global_symbol(public_name(symbol)) {
            0 => library.symbol(symbol),
            address => address,
        };
        let lacks =
            |symbol: &CStr| format!("{} has no {}", path.display(), symbol.to_string_lossy());
        let call = Functions::load(find).map_err(lacks)?;
        let more = CheckFunctions::load(find).map_err(lacks)?;
        let constants = Constants::of(abi, named.is_intel(), dl::global_symbol);
        Ok(OpenedMpi {
            abi,
            constants,
            call,
            more,
            line: named.line,
            fompi: match fompi {
                Some(fompi) => version_of(fompi).ok_or("libfompi.so has no fompi_version")?,
                None => String::new(),
            },
            library: path,
        })
    }

    /// Initialises the MPI.
    pub fn initialise(&self) -> Result<(), String> {
        // SAFETY: MPI_Init allows null pointers (MPI-4.1 §11.2.1).
        match unsafe { (self.more.init)(std::ptr::null_mut(), std::ptr::null_mut()) } {
            0 => Ok(()),
            code => Err(format!("MPI_Init fails with error code {code}")),
        }
    }

    /// The text of an error code.
    pub fn text_of(&self, code: c_int) -> String {
        let (mut text, mut length) = ([0_u8; 8192], 0);
        let at = text.as_mut_ptr().cast::<c_char>();
        // SAFETY: the text is longer than MPI_MAX_ERROR_STRING of every ABI.
        unsafe { (self.call.error_string)(code, at, &mut length) };
        let text = String::from_utf8_lossy(&text[..length.cast_unsigned().to_usize()]).into_owned();
        if text.is_empty() { format!("error code {code}") } else { text }
    }

    /// The name of the ABI.
    pub fn abi_name(&self) -> &'static str {
        match self.abi {
            Abi::Mpich => "MPICH ABI",
            Abi::OpenMpi => "Open MPI ABI",
            Abi::Standard => "MPI-5 ABI",
        }
    }

    /// The handle of a datatype that every MPI has, by its name in C.
    pub fn datatype(&self, name: &str) -> Handle {
        let known = PREDEFINED.iter().find(|known| known.name == name);
        known
            .map_or(self.constants.datatype_null, |known| known.handle(self.abi, dl::global_symbol))
    }

    /// Returns the texts of all ranks of a communicator, whose number is `ranks`. Collective.
    pub fn gather(&self, comm: Handle, ranks: usize, own: &str) -> Result<Vec<String>, String> {
        let byte = self.datatype("MPI_BYTE");
        let gather = |own: *const c_void, all: *mut c_void, bytes: c_int| {
            // SAFETY: this number of bytes is at `own`, and for each rank at `all`.
            match unsafe { (self.call.allgather)(own, bytes, byte, all, bytes, byte, comm) } {
                0 => Ok(()),
                code => Err(self.text_of(code)),
            }
        };
        let (length, mut lengths) = (own.len().to_i32(), vec![0_i32; ranks]);
        gather((&raw const length).cast(), lengths.as_mut_ptr().cast(), 4)?;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let bytes = longest.cast_unsigned().to_usize();
        if bytes == 0 {
            return Ok(vec![String::new(); ranks]);
        }
        let mut padded = own.as_bytes().to_vec();
        padded.resize(bytes, 0);
        let mut all = vec![0_u8; bytes * ranks];
        gather(padded.as_ptr().cast(), all.as_mut_ptr().cast(), longest)?;
        let text = |(at, length): (usize, &c_int)| {
            let text = &all[at * bytes..][..length.cast_unsigned().to_usize()];
            String::from_utf8_lossy(text).into_owned()
        };
        Ok(lengths.iter().enumerate().map(text).collect())
    }

    /// Returns the value of a key in an info object, if it has the key, and frees the object.
    pub fn value_of(&self, mut info: Handle, key: &CStr) -> Option<String> {
        let (mut value, mut flag) = ([0_u8; 1025], 0);
        let length = self.constants.max_info_val;
        // SAFETY: an info object of this MPI, local out parameters, and a buffer that is longer.
        unsafe {
            (self.call.info_get)(info, key.as_ptr(), length, value.as_mut_ptr().cast(), &mut flag);
            if let Some(free) = self.call.info_free {
                free(&mut info);
            }
        }
        let value = value.split(|byte| *byte == 0).next().unwrap_or_default();
        (flag != 0).then(|| String::from_utf8_lossy(value).into_owned())
    }

    /// The handle of an operation.
    pub fn op(&self, op: Op) -> Handle {
        op_handle(&OPS[op as usize], self.abi, dl::global_symbol)
    }
}

fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())
}

/// `MPI_X` for `PMPI_X`; other names as they are.
fn public_name(symbol: &'static CStr) -> &'static CStr {
    let is_profiled = symbol.to_bytes().starts_with(b"PMPI");
    let bytes = &symbol.to_bytes_with_nul()[usize::from(is_profiled)..];
    CStr::from_bytes_with_nul(bytes).unwrap_or(symbol)
}

fn version_of(fompi: Library) -> Option<String> {
    type Version = unsafe extern "C" fn() -> *const c_char;
    // SAFETY: the function has this type (include/fompi.h).
    let version: Version = unsafe { fompi.function("fompi_version\0") }?;
    // SAFETY: it returns a string that is never freed.
    let text = unsafe { CStr::from_ptr(version()) };
    Some(text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_names_that_programs_use() {
        assert_eq!(public_name(c"PMPI_Put"), c"MPI_Put");
        assert_eq!(public_name(c"PMPIX_Grequest_start"), c"MPIX_Grequest_start");
        assert_eq!(public_name(c"opal_progress_register"), c"opal_progress_register");
    }
}
