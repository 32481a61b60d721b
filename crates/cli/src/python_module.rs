//! The MPI that mpi4py takes in a Python. Python is asked for the module that `import` would load,
//! which MPI does not notice: mpi4py starts MPI only when that module is loaded.

use crate::run::linked::libraries_of;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Finds the module, and the MPI library that mpi4py has opened to choose it.
const QUESTION: &str = r#"
import importlib.util, json, re
said = {}
try:
    found = importlib.util.find_spec("mpi4py") and importlib.util.find_spec("mpi4py.MPI")
    if found:
        import mpi4py
        said["file"], said["version"] = found.origin, mpi4py.__version__
        with open("/proc/self/maps") as maps:
            opened = re.search(r"(/\S*/libmpi[^/\s]*\.so[^/\s]*)$", maps.read(), re.MULTILINE)
        said["library"] = opened[1] if opened else None
except Exception as error:
    said["error"] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"#;

/// The extension module of mpi4py.
pub struct MpiModule {
    /// the version of mpi4py
    pub version: String,
    /// the file of the module
    pub file: PathBuf,
    /// the MPI library that it gets; `None` if the loader finds none
    pub library: Option<PathBuf>,
}

/// The answer of Python.
#[derive(Default, Deserialize)]
struct Said {
    file: Option<PathBuf>,
    version: Option<String>,
    library: Option<PathBuf>,
    error: Option<String>,
}

impl MpiModule {
    /// Returns the module that a Python would load, or the reason why it would load none.
    pub fn of(python: &Path) -> Result<MpiModule, String> {
        let asked = Command::new(python)
            .args(["-c", QUESTION])
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", python.display()))?;
        let said: Said = serde_json::from_slice(&asked.stdout)
            .map_err(|_| format!("{} does not answer", python.display()))?;
        let (file, version) = match (said.file, said.version, said.error) {
            (Some(file), Some(version), None) => (file, version),
            (_, _, Some(error)) => return Err(format!("mpi4py finds no MPI: {error}")),
            _ => return Err(format!("{} has no mpi4py", python.display())),
        };
        let is_mpi = |name: &str| name.starts_with("libmpi") && name.contains(".so");
        let library = said.library.or_else(|| {
            let linked = libraries_of(&file).into_iter().find(|one| is_mpi(&one.name));
            linked.and_then(|one| one.path)
        });
        Ok(MpiModule { version, file, library })
    }
}
