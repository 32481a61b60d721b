//! Ranks of this job on this node, from /proc, for a rank that waits for others before it has
//! shared anything with them. Launchers give a process its rank in its environment; ranks of one
//! job are descendants of one launcher. A rank that waits long shows a [`WaitMark`]. Not for
//! anything on which correctness depends.

use super::ancestors::{self, ANCESTORS_MAX};
use super::{memfd, proc_text};
use crate::error::Result;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A rank that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRank {
    /// its rank in MPI_COMM_WORLD
    pub world_rank: u32,
    /// its process id
    pub pid: i32,
    /// whether its process has loaded this library
    pub has_library: bool,
    /// whether it waits for the same ranks as this process (shows an equal [`WaitMark`])
    pub waits: bool,
}

/// An empty file in memory, whose name other processes see in /proc/PID/fd: this process waits.
pub struct WaitMark {
    name: String,
    _file: File,
}

impl WaitMark {
    /// Shows that this process waits for the ranks with this hash, until this is dropped.
    pub fn show(awaited_ranks_hash: u64) -> Result<WaitMark> {
        let name = format!("fompi-waits-{awaited_ranks_hash:016x}");
        let text = CString::new(name.as_str()).unwrap_or_default();
        Ok(WaitMark { name, _file: memfd::create(&text)? })
    }
}

/// Returns the other ranks of this job on this node, in their order. `rank_variable`: the one in
/// which the launcher has given this process its rank.
pub fn others(rank_variable: &str, mark: &WaitMark) -> Vec<FoundRank> {
    let own = super::process::id();
    let proc = Proc { root: PathBuf::from("/proc"), rank_variable };
    // The file of this library: the one that is mapped at its own code.
    let library = proc.file_at(own, others as *const () as u64);
    proc.find(own, &library.unwrap_or_default(), &mark.name)
}

/// Whether this process descends from a rank: an ancestor has the launcher's `rank_variable`,
/// too, and has loaded an MPI. A shell around a rank does not count.
pub fn is_below_a_rank(rank_variable: &str) -> bool {
    let proc = Proc { root: PathBuf::from("/proc"), rank_variable };
    proc.is_below_a_rank(super::process::id())
}

/// A folder like /proc.
struct Proc<'a> {
    root: PathBuf,
    /// the variable in which the launcher gives a process its rank
    rank_variable: &'a str,
}

impl Proc<'_> {
    fn find(&self, own: i32, library: &str, mark: &str) -> Vec<FoundRank> {
        let job = self.job(own);
        let mut best: BTreeMap<u32, (bool, FoundRank)> = BTreeMap::new();
        let mut pids: Vec<i32> = names(&self.root).iter().filter_map(|n| n.parse().ok()).collect();
        pids.sort_unstable();
        for pid in pids {
            let is_of_it = |pid| job.is_some() && self.job(pid) == job;
            let Some(rank) = self.rank(pid).filter(|_| is_of_it(pid)) else { continue };
            let Some((has_library, has_mpi)) = self.loaded(pid, library) else { continue };
            let found =
                FoundRank { world_rank: rank, pid, has_library, waits: self.shows(pid, mark) };
            // A shell around a rank has the rank's environment too, and so have the rank's
            // children.
            let better =
                |(mpi, old): &(bool, FoundRank)| (found.waits, has_mpi) > (old.waits, *mpi);
            if best.get(&rank).is_none_or(better) {
                best.insert(rank, (has_mpi, found));
            }
        }
        let own_rank = self.rank(own);
        best.into_values()
            .map(|(_, found)| found)
            .filter(|found| Some(found.world_rank) != own_rank)
            .collect()
    }

    fn path_of(&self, pid: i32, file: &str) -> PathBuf {
        self.root.join(pid.to_string()).join(file)
    }

    /// A variable of the environment that a process was started with.
    fn environment(&self, pid: i32, name: &str) -> Option<String> {
        let environment = fs::read(self.path_of(pid, "environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let prefix = format!("{name}=");
        let value = variables.find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    fn rank(&self, pid: i32) -> Option<u32> {
        self.environment(pid, self.rank_variable)?.parse().ok()
    }

    /// Returns what identifies a job: the launcher, which is the first ancestor that is no rank,
    /// and the name that PMIx gives to the job.
    fn job(&self, pid: i32) -> Option<(i32, Option<String>)> {
        let mut at = pid;
        for _ in 0..ANCESTORS_MAX {
            at = ancestors::parent(&self.root, at)?;
            if self.rank(at).is_none() {
                return Some((at, self.environment(pid, "PMIX_NAMESPACE")));
            }
        }
        None
    }

    fn is_below_a_rank(&self, pid: i32) -> bool {
        let above = |pid: &i32| ancestors::parent(&self.root, *pid);
        std::iter::successors(above(&pid), above)
            .take(ANCESTORS_MAX)
            .take_while(|pid| self.environment(*pid, self.rank_variable).is_some())
            .any(|pid| self.loaded(pid, "").is_some_and(|(_, has_mpi)| has_mpi))
    }

    /// Whether a process has loaded this library, and an MPI.
    fn loaded(&self, pid: i32, library: &str) -> Option<(bool, bool)> {
        let maps = fs::read_to_string(self.path_of(pid, "maps")).ok()?;
        let files = || maps.lines().filter_map(file_name);
        let has_library = files().any(|file| file == library || file.starts_with("libfompi."));
        Some((has_library, files().any(|file| file.starts_with("libmpi"))))
    }

    /// Returns the name of the file that is mapped at an address of a process.
    fn file_at(&self, pid: i32, address: u64) -> Option<String> {
        let maps = fs::read_to_string(self.path_of(pid, "maps")).ok()?;
        let is_there = |line: &&str| {
            proc_text::range(line).is_some_and(|(from, to)| (from..to).contains(&address))
        };
        maps.lines().find(is_there).and_then(file_name).map(str::to_owned)
    }

    fn shows(&self, pid: i32, mark: &str) -> bool {
        let folder = self.path_of(pid, "fd");
        let is_it = |link: PathBuf| link.to_string_lossy().contains(mark);
        names(&folder).iter().any(|fd| fs::read_link(folder.join(fd)).is_ok_and(is_it))
    }
}

/// Returns the names in a folder; none if it may not be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Returns the name of the file in a line of /proc/PID/maps.
fn file_name(line: &str) -> Option<&str> {
    line.split_once('/').map(|(_, path)| path.rsplit('/').next().unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const LIBRARY: &str = "7f0000000000-7f0000001000 r-xp 0 08:01 5   /opt/a b/libfompi.so\n";
    const MPI: &str = "7f0000002000-7f0000003000 r-xp 0 08:01 6   /usr/lib/libmpi.so.40\n";

    /// A folder like /proc, until it is dropped.
    struct Fake(PathBuf);

    impl Fake {
        fn new(name: &str) -> Fake {
            let folder = format!("fompi-job-{}-{name}", super::super::process::id());
            Fake(std::env::temp_dir().join(folder))
        }

        /// Process `pid` of `parent` with an environment, files that are mapped, and a mark.
        fn add(&self, (pid, parent): (i32, i32), environ: &str, maps: &str, mark: &str) {
            let folder = self.0.join(pid.to_string());
            fs::create_dir_all(folder.join("fd")).unwrap();
            fs::write(folder.join("stat"), format!("{pid} (a) b) S {parent} 1 1 0")).unwrap();
            fs::write(folder.join("environ"), environ.replace(' ', "\0")).unwrap();
            fs::write(folder.join("maps"), maps).unwrap();
            symlink(format!("/memfd:{mark} (deleted)"), folder.join("fd/7")).unwrap();
        }

        /// Returns (rank, process, whether the library is loaded, whether it waits) of those that
        /// 101 finds.
        fn others(&self) -> Vec<(u32, i32, bool, bool)> {
            let proc = Proc { root: self.0.clone(), rank_variable: "R" };
            let found = proc.find(101, "libfompi.so", "fompi-waits-1");
            found.iter().map(|f| (f.world_rank, f.pid, f.has_library, f.waits)).collect()
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn ranks_of_the_same_launcher_are_found() {
        let (fake, both) = (Fake::new("ranks"), format!("{LIBRARY}{MPI}"));
        fake.add((100, 1), "HOME=/", "", "");
        fake.add((101, 100), "A=1 R=0", &both, "fompi-waits-1");
        fake.add((102, 100), "R=1", MPI, "other");
        fake.add((103, 100), "R=2 B=", &both, "fompi-waits-1");
        fake.add((104, 100), "R=3", &both, "fompi-waits-2");
        fake.add((105, 100), "R=nothing", &both, "");
        // Processes of other jobs.
        fake.add((200, 1), "", "", "");
        fake.add((201, 200), "R=4", &both, "");
        fake.add((106, 100), "R=5 PMIX_NAMESPACE=spawned", &both, "");
        assert_eq!(
            fake.others(),
            [(1, 102, false, false), (2, 103, true, true), (3, 104, true, false)]
        );
    }

    #[test]
    fn shells_around_a_rank_and_its_children_are_not_taken_for_it() {
        let (fake, both) = (Fake::new("shells"), format!("{LIBRARY}{MPI}"));
        fake.add((100, 1), "", "", "");
        fake.add((99, 100), "R=0", LIBRARY, "");
        fake.add((101, 99), "R=0", &both, "fompi-waits-1");
        fake.add((102, 100), "R=1", LIBRARY, "");
        fake.add((103, 102), "R=1", MPI, "");
        fake.add((104, 103), "R=1", MPI, "");
        fake.add((105, 100), "R=2", &both, "");
        fake.add((106, 105), "R=2", &both, "fompi-waits-1");
        assert_eq!(fake.others(), [(1, 103, false, false), (2, 106, true, true)]);
    }

    #[test]
    fn a_tool_of_a_rank_is_distinguished_from_a_rank_in_a_shell() {
        let fake = Fake::new("below");
        fake.add((99, 1), "A=1", MPI, ""); // has started the launcher
        fake.add((100, 99), "A=1", "", "");
        fake.add((101, 100), "R=4", LIBRARY, ""); // a shell
        fake.add((102, 101), "R=4", MPI, "");
        fake.add((103, 102), "R=4", "", "");
        fake.add((104, 103), "R=4", MPI, "");
        let proc = Proc { root: fake.0.clone(), rank_variable: "R" };
        assert!(!proc.is_below_a_rank(102));
        assert!(proc.is_below_a_rank(104));
    }

    #[test]
    fn a_mark_is_seen_while_it_is_shown() {
        let proc = Proc { root: PathBuf::from("/proc"), rank_variable: "R" };
        let own = super::super::process::id();
        let mark = WaitMark::show(u64::from(own as u32) << 32 | 0xabc).unwrap();
        let name = mark.name.clone();
        assert!(proc.shows(own, &name));
        drop(mark);
        assert!(!proc.shows(own, &name));
        let file = proc.file_at(own, others as *const () as u64);
        assert!(proc.loaded(own, &file.unwrap()).unwrap().0);
    }
}
