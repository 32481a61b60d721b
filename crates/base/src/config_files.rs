//! Configuration files: lines `NAME=value` with the names of the FOMPI_ variables. Invariant: a
//! program with more rights than its user takes nothing from a file that users other than root can
//! change.

use crate::messages::{self, Line, filled};
use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file of the machine.
pub const OF_MACHINE: &str = "/etc/fompi.conf";
/// The file of the installation, relative to its folder. The library is in a folder of that, or, in
/// Debian's layout, in one of `lib` for each processor.
const OF_INSTALLATION: &str = "etc/fompi.conf";
const BYTES_MAX: u64 = 64 << 10;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// a line of a file, from 1 on
    File(PathBuf, usize),
    /// the environment of the process
    Environment,
}

impl fmt::Display for ValueSource {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueSource::File(path, line) => write!(to, "{}:{line}", path.display()),
            ValueSource::Environment => write!(to, "environment"),
        }
    }
}

/// A value that a variable is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenValue {
    /// the name of the variable
    pub name: String,
    /// the value, which may be invalid
    pub value: String,
    /// where it comes from
    pub source: ValueSource,
}

/// Returns the files of the library at a path, in the order in which they are read: a later one
/// wins.
pub fn files(library: Option<&Path>) -> Vec<PathBuf> {
    // A path that depends on the working folder is no installation.
    let library = library.filter(|path| path.is_absolute());
    let prefix = library.and_then(|path| {
        let folder = path.parent()?;
        let is_of_processor = folder.to_str()?.ends_with("-linux-gnu");
        if is_of_processor { folder.parent()?.parent() } else { folder.parent() }
    });
    let own = prefix.map(|prefix| prefix.join(OF_INSTALLATION));
    let own = own.filter(|path| path != Path::new(OF_MACHINE));
    [PathBuf::from(OF_MACHINE)].into_iter().chain(own).collect()
}

/// Returns the values in a file, and warnings; nothing if there is no such file.
pub fn read(path: &Path, privileged: bool) -> (Vec<GivenValue>, Vec<Line>) {
    let shown = path.display();
    let ignored =
        |why: &str| (Vec::new(), vec![filled!(messages::FILE_IGNORED; path = shown, why).line()]);
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let (mut text, file) = match opened {
        Ok(file) => (String::new(), file),
        Err(error) if is_absent(&error) => return (Vec::new(), Vec::new()),
        Err(error) => return ignored(&error.to_string()),
    };
    match file.metadata() {
        Ok(about) if !about.is_file() => return ignored("it is no file"),
        Ok(about) if privileged && !is_of_root(&about) => {
            return ignored("this program is privileged, and users other than root can change it");
        }
        Ok(about) if about.len() > BYTES_MAX => return ignored("it has more than 64 KiB"),
        Ok(_) => {}
        Err(error) => return ignored(&error.to_string()),
    }
    match contents(file, &mut text) {
        Ok(_) => values_in(path, &text),
        Err(error) => ignored(&error.to_string()),
    }
}

fn contents(file: File, text: &mut String) -> io::Result<usize> {
    file.take(BYTES_MAX).read_to_string(text)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether only root can change a file.
fn is_of_root(about: &Metadata) -> bool {
    about.uid() == 0 && about.mode() & 0o022 == 0
}

/// Returns the values in a text, and a warning for each other line that is neither empty nor a
/// comment.
fn values_in(path: &Path, text: &str) -> (Vec<GivenValue>, Vec<Line>) {
    let (mut values, mut warnings) = (Vec::new(), Vec::new());
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let source = ValueSource::File(path.to_owned(), number);
        match line.split_once('=') {
            Some((name, value)) if name.starts_with("FOMPI_") => values.push(GivenValue {
                name: name.trim_end().to_owned(),
                value: value.trim_start().to_owned(),
                source,
            }),
            _ => warnings.push(filled!(messages::LINE_IGNORED; source, text = line).line()),
        }
    }
    (values, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    /// A file in a folder of its own, which is removed at the end.
    struct Written(PathBuf);

    impl Written {
        fn new(name: &str, text: &str) -> Written {
            let folder = format!("fompi-conf-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("fompi.conf"), text).unwrap();
            Written(folder.join("fompi.conf"))
        }

        fn read(&self, privileged: bool) -> (usize, Vec<String>) {
            let (values, warnings) = read(&self.0, privileged);
            let shown = format!("{} is ignored: ", self.0.display());
            (
                values.len(),
                warnings
                    .iter()
                    .map(|line| line.to_string().replace(&shown, "").replace(" [FOMPI-W039]", ""))
                    .collect(),
            )
        }
    }

    impl Drop for Written {
        fn drop(&mut self) {
            fs::remove_dir_all(self.0.parent().unwrap()).unwrap();
        }
    }

    #[test]
    fn a_line_is_a_name_and_a_value() {
        let path = Path::new("/a.conf");
        let text = "# a comment\n\n FOMPI_NET = tcp \nFOMPI_VERBS_LIBRARY=/a=b\nFOMPI_X=\n";
        let (values, warnings) = values_in(path, text);
        let found: Vec<_> = values
            .iter()
            .map(|given| (&*given.name, &*given.value, given.source.to_string()))
            .collect();
        let expected = [
            ("FOMPI_NET", "tcp", "/a.conf:3".into()),
            ("FOMPI_VERBS_LIBRARY", "/a=b", "/a.conf:4".into()),
            ("FOMPI_X", "", "/a.conf:5".into()),
        ];
        assert_eq!((found, warnings.len()), (expected.into(), 0));
    }

    #[test]
    fn a_malformed_line_gives_a_warning() {
        let (values, warnings) = values_in(Path::new("/a"), "FOMPI_NET tcp\nPATH=/\nFOMPI_NET=off");
        assert_eq!(values.len(), 1);
        assert_eq!(warnings.len(), 2);
        let first = warnings[0].to_string();
        assert!(first.starts_with("/a:1: `FOMPI_NET tcp` is ignored: "), "{first}");
    }

    #[test]
    fn the_file_of_an_installation_comes_after_that_of_the_machine() {
        let of = |path: &str| files(Some(Path::new(path)));
        let machine = Path::new(OF_MACHINE);
        assert_eq!(of("/opt/a/lib/libfompi.so"), [machine, Path::new("/opt/a/etc/fompi.conf")]);
        let debians = of("/opt/a/lib/x86_64-linux-gnu/libfompi.so");
        assert_eq!(debians, [machine, Path::new("/opt/a/etc/fompi.conf")]);
        assert_eq!(files(None), [machine]);
        for path in ["./libfompi.so", "lib/libfompi.so", "/lib/libfompi.so", "/libfompi.so"] {
            assert_eq!(of(path), [machine], "{path}");
        }
    }

    #[test]
    fn a_file_that_is_absent_says_nothing_and_a_folder_is_no_file() {
        let written = Written::new("absent", "FOMPI_NET=tcp\n");
        for path in [written.0.with_extension("gone"), written.0.join("x")] {
            assert_eq!(read(&path, false), (Vec::new(), Vec::new()));
        }
        let (values, warnings) = read(written.0.parent().unwrap(), false);
        assert_eq!((values.len(), warnings.len()), (0, 1));
        assert!(warnings[0].to_string().contains("it is no file"), "{}", warnings[0]);
        assert_eq!(written.read(false), (1, Vec::new()));
    }

    #[test]
    fn a_file_that_cannot_be_opened_gives_a_warning() {
        let written = Written::new("loop", "");
        let path = written.0.with_file_name("loop.conf");
        symlink(&path, &path).unwrap();
        let (values, warnings) = read(&path, false);
        assert_eq!((values.len(), warnings.len()), (0, 1));
        let start = format!("{} is ignored: ", path.display());
        assert!(warnings[0].to_string().starts_with(&start));
    }

    #[test]
    fn a_large_file_is_ignored() {
        let line = "# 8 byte\n";
        let most = usize::try_from(BYTES_MAX).unwrap();
        let large = Written::new("large", &line.repeat(most / line.len() + 1));
        assert_eq!(large.read(false), (0, vec!["it has more than 64 KiB".into()]));
        let full = format!("FOMPI_NET=tcp\n{}", "#".repeat(most - 14));
        assert_eq!(Written::new("full", &full).read(false), (1, Vec::new()));
    }

    #[test]
    fn a_privileged_program_reads_files_of_root_alone() {
        let written = Written::new("rights", "FOMPI_NET=tcp\n");
        let is_root = fs::metadata(&written.0).unwrap().uid() == 0;
        let allow =
            |mode| fs::set_permissions(&written.0, fs::Permissions::from_mode(mode)).unwrap();
        for (mode, is_safe) in [(0o644, true), (0o600, true), (0o664, false), (0o646, false)] {
            allow(mode);
            assert_eq!(written.read(true).0, usize::from(is_safe && is_root), "{mode:o}");
            assert_eq!(written.read(false), (1, Vec::new()));
        }
        allow(0o644);
        if is_root {
            chown(&written.0, Some(65534), None).unwrap();
            assert_eq!(written.read(true).0, 0);
        }
        assert_eq!(written.read(true).1.len(), 1);
    }
}
