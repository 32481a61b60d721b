//! Ancestors of processes, as /proc shows them.

use super::proc_text;
use std::fs;
use std::path::Path;

/// The most ancestors of a process that are read.
pub const ANCESTORS_MAX: usize = 64;

/// Returns the parent of a process; 0 if it is in another namespace. `proc`: a folder like /proc.
pub fn parent(proc: &Path, pid: i32) -> Option<i32> {
    let stat = fs::read(proc.join(pid.to_string()).join("stat")).ok()?;
    proc_text::stat_fields(&stat)?.nth(1)?.parse().ok()
}

/// The first parts of the names of MPI's launchers, and of their helpers on each node.
const LAUNCHERS: [&str; 8] =
    ["mpiexec", "mpirun", "hydra", "orte", "prte", "srun", "slurmstepd", "palsd"];

/// Returns a process from which all of these descend, or which is one of them itself. This is the
/// farthest launcher, which has also started the processes that they spawn (MPI-4.1 §11.8), or the
/// nearest common ancestor if none is a launcher. `None`: there is none, or some cannot be read.
pub fn common(proc: &Path, pids: impl IntoIterator<Item = i32>) -> Option<i32> {
    let mut pids = pids.into_iter();
    let mut shared = lineage(proc, pids.next()?);
    for pid in pids {
        let line = lineage(proc, pid);
        shared.retain(|ancestor| line.contains(ancestor));
    }
    let launcher = shared.iter().rfind(|pid| is_launcher(proc, **pid));
    launcher.or(shared.first()).copied()
}

fn is_launcher(proc: &Path, pid: i32) -> bool {
    let name = fs::read_to_string(proc.join(pid.to_string()).join("comm")).unwrap_or_default();
    LAUNCHERS.iter().any(|launcher| name.starts_with(launcher))
}

/// Returns a process and its ancestors, the nearest first.
fn lineage(proc: &Path, pid: i32) -> Vec<i32> {
    let above = |pid: &i32| parent(proc, *pid).filter(|parent| *parent > 0);
    std::iter::successors(Some(pid), above).take(ANCESTORS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A folder like /proc with these processes and their parents, until it is dropped.
    struct Fake(PathBuf);

    impl Fake {
        fn new(name: &str, processes: &[(i32, i32)]) -> Fake {
            let own = crate::process::id();
            let folder = std::env::temp_dir().join(format!("fompi-ancestors-{own}-{name}"));
            for (pid, parent) in processes {
                let process = folder.join(pid.to_string());
                fs::create_dir_all(&process).unwrap();
                fs::write(process.join("stat"), format!("{pid} (a) b) S {parent} 1 1 0")).unwrap();
            }
            Fake(folder)
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_nearest_common_ancestor_is_found() {
        let tree = [(1, 0), (5, 1), (6, 5), (10, 6), (11, 6), (7, 5), (12, 7), (13, 12), (20, 0)];
        let fake = Fake::new("tree", &tree);
        let common = |pids: &[i32]| common(&fake.0, pids.iter().copied());
        assert_eq!(common(&[10, 11]), Some(6));
        assert_eq!(common(&[10, 11, 13]), Some(5));
        assert_eq!(common(&[13, 12]), Some(12), "an ancestor of the other");
        assert_eq!(common(&[10, 1]), Some(1));
        assert_eq!(common(&[10, 20]), None, "put into the namespace from outside");
        assert_eq!(common(&[10, 99]), None, "not to be looked at");
        assert_eq!(common(&[]), None);
    }

    #[test]
    fn the_farthest_launcher_has_started_what_is_spawned_too() {
        let tree = [(1, 0), (5, 1), (6, 5), (7, 6), (10, 7), (11, 7), (12, 10)];
        let fake = Fake::new("launchers", &tree);
        let name = |pid: i32, name| fs::write(fake.0.join(format!("{pid}/comm")), name).unwrap();
        name(5, "bash\n");
        name(7, "hydra_pmi_proxy\n");
        let common = |pids: &[i32]| common(&fake.0, pids.iter().copied());
        assert_eq!(common(&[10, 11]), Some(7));
        assert_eq!(common(&[12]), Some(7), "a shell stands between");
        name(6, "mpiexec.hydra\n");
        assert_eq!(common(&[10, 11]), Some(6));
        assert_eq!(common(&[10, 5]), Some(5), "which is no launcher");
    }

    #[test]
    fn this_process_descends_from_its_parent() {
        let own = crate::process::id();
        // SAFETY: a system call that writes to no memory of this process.
        let above = unsafe { libc::getppid() };
        assert_eq!(parent(Path::new("/proc"), own), Some(above));
        if above > 0 {
            assert!(lineage(Path::new("/proc"), own).starts_with(&[own, above]));
        }
    }
}
