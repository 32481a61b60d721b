//! The MPI library of the launcher that has started this process: the processes of the launcher
//! are ancestors of this one, and their programs are in the installation of the MPI.

use crate::run::launcher::LauncherFamily;
use fompi_sys::ancestors::parent;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The beginnings of the names of the programs of launchers: of Hydra, and of Open MPI.
const HYDRA: [&str; 3] = ["hydra", "mpiexec.hydra", "mpiexec.mpich"];
const OPEN_MPI: [&str; 3] = ["orte", "prte", "mpirun.openmpi"];
/// The ancestors that are looked at.
const ANCESTORS: usize = 16;

/// Returns the libraries that may be the MPI of this rank, the most likely one first.
pub fn candidates() -> Vec<PathBuf> {
    match own_launcher() {
        Some((family, path)) => of_launcher(family, &path),
        None => names(family_of_environment()).into_iter().map(PathBuf::from).collect(),
    }
}

/// Returns the program of a launcher that has started this process, and its family.
pub fn own_launcher() -> Option<(LauncherFamily, PathBuf)> {
    let own = std::process::id().cast_signed();
    let above = std::iter::successors(Some(own), |pid| parent(Path::new("/proc"), *pid));
    let mut programs =
        above.take(ANCESTORS).filter_map(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok());
    programs.find_map(|path| Some((family_of(&path)?, path)))
}

/// The family of a program of a launcher.
fn family_of(program: &Path) -> Option<LauncherFamily> {
    let name = program.file_name()?.to_str()?;
    let is_of = |names: [&str; 3]| names.iter().any(|start| name.starts_with(start));
    if is_of(HYDRA) {
        Some(LauncherFamily::Hydra)
    } else {
        is_of(OPEN_MPI).then_some(LauncherFamily::OpenMpi)
    }
}

/// The family whose variables a rank has, for launchers of batch systems.
fn family_of_environment() -> Option<LauncherFamily> {
    let has = |name: &str| env::var_os(name).is_some();
    if has("PMI_RANK") {
        Some(LauncherFamily::Hydra)
    } else {
        (has("OMPI_COMM_WORLD_RANK") || has("PMIX_RANK")).then_some(LauncherFamily::OpenMpi)
    }
}

/// The file names of the libraries of a family, or of both.
fn names(family: Option<LauncherFamily>) -> Vec<&'static str> {
    match family {
        Some(LauncherFamily::Hydra) => vec!["libmpi.so.12", "libmpich.so.12"],
        Some(LauncherFamily::OpenMpi) => vec!["libmpi.so.40"],
        None => vec!["libmpi.so.12", "libmpich.so.12", "libmpi.so.40", "libmpi_abi.so.0"],
    }
}

/// The libraries of the installation that a launcher belongs to, then those that the loader finds.
fn of_launcher(family: LauncherFamily, program: &Path) -> Vec<PathBuf> {
    let multiarch = format!("lib/{}-linux-gnu", env::consts::ARCH);
    let prefixes = program.ancestors().skip(2).take(1);
    let folders = prefixes.flat_map(|prefix| {
        ["lib", "lib64", "lib/release", &multiarch].map(|folder| prefix.join(folder))
    });
    let names = names(Some(family));
    let files = folders
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>());
    let present = files.filter(|path| path.is_file());
    present.chain(names.iter().map(PathBuf::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_launchers_have_a_family() {
        for (path, family) in [
            ("/usr/bin/hydra_pmi_proxy", Some(LauncherFamily::Hydra)),
            ("/opt/mpi/bin/mpiexec.hydra", Some(LauncherFamily::Hydra)),
            ("/usr/bin/orterun", Some(LauncherFamily::OpenMpi)),
            ("/v/bin/prterun", Some(LauncherFamily::OpenMpi)),
            ("/usr/bin/bash", None),
        ] {
            assert_eq!(family_of(Path::new(path)), family, "{path}");
        }
    }

    #[test]
    fn the_loader_is_asked_last() {
        let last = of_launcher(LauncherFamily::Hydra, Path::new("/nowhere/bin/hydra_pmi_proxy"));
        assert_eq!(last, ["libmpi.so.12", "libmpich.so.12"].map(PathBuf::from));
    }
}
