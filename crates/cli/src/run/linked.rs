//! The shared libraries that a program is linked with, as the loader finds them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A shared library that a program needs.
#[derive(Debug, PartialEq, Eq)]
pub struct NeededLibrary {
    /// its file name
    pub name: String,
    /// its path; `None` if the loader does not find it
    pub path: Option<PathBuf>,
}

/// Returns the libraries of a program in the order in which the loader searches symbols in them.
pub fn libraries_of(program: &Path) -> Vec<NeededLibrary> {
    let said = Command::new("ldd").arg(program).env("LD_PRELOAD", "").output();
    listed_in(&said.map(|said| said.stdout).unwrap_or_default())
}

/// Reads the lines of ldd.
fn listed_in(text: &[u8]) -> Vec<NeededLibrary> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"\t"));
    lines.filter_map(|line| listed_library(&line[1..])).collect()
}

/// Reads `NAME => PATH (ADDRESS)`, `NAME => not found` or `PATH (ADDRESS)`.
fn listed_library(line: &[u8]) -> Option<NeededLibrary> {
    let line = String::from_utf8(line.to_vec()).ok()?;
    let (wanted, found) = match line.split_once(" => ") {
        Some((wanted, found)) => (wanted, found),
        None if line.starts_with('/') => (line.split(" (").next()?, line.as_str()),
        None => return None,
    };
    let name = wanted.rsplit('/').next()?.to_owned();
    let path =
        found.starts_with('/').then(|| PathBuf::from(found.split(" (").next().unwrap_or(found)));
    Some(NeededLibrary { name, path })
}

/// Whether a file is a program or a library, and not a script.
pub fn is_elf(path: &Path) -> bool {
    let mut start = [0; 4];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_ldd_name_libraries_and_paths() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x00007f)\n\
                    \tlibgone.so => not found\n\
                    \t/opt/a/liba.so => /opt/b/liba.so (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\
                    ldd: warning\n";
        let expected = [
            ("libmpi.so.40", Some("/usr/lib/libmpi.so.40")),
            ("libgone.so", None),
            ("liba.so", Some("/opt/b/liba.so")),
            ("ld-linux-x86-64.so.2", Some("/lib64/ld-linux-x86-64.so.2")),
        ];
        let found = listed_in(text.as_bytes());
        let found: Vec<_> = found
            .iter()
            .map(|library| (library.name.as_str(), library.path.as_deref().and_then(Path::to_str)))
            .collect();
        assert_eq!(found, expected);
    }
}
