//! Programs in the folders of PATH.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Whether a file may be executed.
pub fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Returns the first program with a name in PATH.
pub fn in_path(name: impl AsRef<Path>) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders = env::split_paths(&path).map(|folder| match folder.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => folder,
    });
    folders.map(|folder| folder.join(name.as_ref())).find(|at| is_executable(at))
}
