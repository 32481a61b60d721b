//! The libfompi.so that belongs to this program, and its version.

use fompi_base::messages::{self, Line, filled};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The beginning of the version's text in the library's file.
const VERSION: &[u8] = b"libfompi version ";

/// Returns the folder of this program.
pub fn own_folder() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    program.parent().unwrap_or(Path::new("/")).to_owned()
}

/// Returns the library that FOMPI_LIB names, or the one next to this program or in its
/// installation; otherwise the reason.
pub fn find_library() -> Result<PathBuf, Line> {
    if let Some(named) = env::var_os("FOMPI_LIB").filter(|name| !name.is_empty()) {
        let (found, path) = (fs::canonicalize(&named), named.display());
        return match found.ok().filter(|path| path.is_file()) {
            None => Err(filled!(messages::FOMPI_LIB_ABSENT; path).line()),
            Some(file) if version_of(&file).is_none() => {
                Err(filled!(messages::FOMPI_LIB_OTHER; path).line())
            }
            Some(file) => Ok(file),
        };
    }
    let here = own_folder();
    let multiarch = format!("../lib/{}-linux-gnu", env::consts::ARCH);
    let folders = [".", "../lib", "../lib64", &multiarch];
    let files = folders.map(|folder| here.join(folder).join("libfompi.so"));
    let found = files.iter().find(|file| file.is_file()).and_then(|file| file.canonicalize().ok());
    let folder = here.display();
    found.ok_or_else(|| filled!(messages::LIBRARY_ABSENT; folder, multiarch).line())
}

/// Returns the version that a library's file has: `libfompi version 1.2.3`.
pub fn version_of(library: &Path) -> Option<String> {
    let bytes = fs::read(library).ok()?;
    let is_of_version = |byte: &u8| byte.is_ascii_alphanumeric() || b".+-".contains(byte);
    let starts = bytes.windows(VERSION.len()).enumerate().filter(|(_, window)| *window == VERSION);
    let texts = starts.map(|(at, _)| {
        let number = &bytes[at + VERSION.len()..];
        let end = number.iter().position(|byte| !is_of_version(byte)).unwrap_or(number.len());
        &number[..end]
    });
    let mut numbers = texts.filter(|number| number.first().is_some_and(u8::is_ascii_digit));
    let number = numbers.next()?;
    Some(format!("libfompi version {}", String::from_utf8_lossy(number)))
}

/// Returns the version of a library with its path, as a line.
pub fn version_line(library: &Path) -> String {
    let version = version_of(library).unwrap_or_else(|| "libfompi of unknown version".into());
    format!("{version} ({})", library.display())
}

/// Whether a text is in a file.
pub fn has_text(file: &Path, text: &str) -> bool {
    let text = OsStr::new(text).as_encoded_bytes();
    fs::read(file).is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text))
}
