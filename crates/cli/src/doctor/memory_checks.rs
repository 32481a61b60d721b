//! Limits on memory and on file descriptors.

use super::findings::{FileRoot, Finding, Severity};
use fompi_sys::memory_limits;
use rustix::process::{Resource, getrlimit};

/// Descriptors that a rank may need: two for each process that it has contacted, and some for
/// segments, over those of the host MPI.
const DESCRIPTORS: u64 = 1024;
/// Locked memory below which an RDMA device registers no large window.
const LOCKED_BYTES: u64 = 1 << 30;
/// Memory below which a rank of a host MPI hardly starts.
const MEMORY_BYTES: u64 = 256 << 20;
/// Free memory of /dev/shm that host MPIs need for their own segments.
const SHM_BYTES: u64 = 64 << 20;

/// Returns the findings about limits.
pub fn all(root: &FileRoot) -> Vec<Finding> {
    let limit = |resource| getrlimit(resource).current;
    let has_device = root.has_device_files();
    let found = [
        descriptors(limit(Resource::Nofile)),
        locked(limit(Resource::Memlock), has_device),
        address_space(limit(Resource::As)),
        file_bytes(limit(Resource::Fsize)),
        control_group(memory_limits::Limits::now()),
        shm(),
    ];
    found.into_iter().flatten().collect()
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// `ulimit -n`.
fn descriptors(soft: Option<u64>) -> Option<Finding> {
    let soft = soft.filter(|soft| *soft < DESCRIPTORS)?;
    Some(Finding {
        severity: Severity::Warning,
        check: "ulimit -n",
        problem: format!("a process may open {soft} files; {DESCRIPTORS} or more are needed"),
        remedy: format!("ulimit -n {DESCRIPTORS}, or nofile in /etc/security/limits.conf"),
        page: "docs/guide/clusters.md#requirements-between-nodes",
    })
}

/// `ulimit -l`, which matters for an RDMA device alone.
fn locked(soft: Option<u64>, has_device: bool) -> Option<Finding> {
    let soft = soft.filter(|soft| has_device && *soft < LOCKED_BYTES)?;
    Some(Finding {
        severity: Severity::Warning,
        check: "ulimit -l",
        problem: format!(
            "a process may lock {} KiB of memory, so the RDMA device registers no larger window",
            soft >> 10
        ),
        remedy:
            "ulimit -l unlimited, or memlock in /etc/security/limits.conf and in the service of \
                 the batch system"
                .into(),
        page: "docs/guide/clusters.md#requirements-between-nodes",
    })
}

/// `ulimit -v`.
fn address_space(soft: Option<u64>) -> Option<Finding> {
    let soft = soft?;
    Some(Finding {
        severity: Severity::Warning,
        check: "ulimit -v",
        problem: format!(
            "the address space of a process is limited to {}: a rank maps the memory of all ranks \
             of its node",
            mib(soft)
        ),
        remedy: "ulimit -v unlimited; limit memory by a control group".into(),
        page: "docs/guide/clusters.md#requirements-between-nodes",
    })
}

/// `ulimit -f`: shared memory is a file.
fn file_bytes(soft: Option<u64>) -> Option<Finding> {
    let soft = soft?;
    Some(Finding {
        severity: Severity::Warning,
        check: "ulimit -f",
        problem: format!(
            "a file of a process is limited to {soft} bytes, and so is the memory that it shares"
        ),
        remedy: "ulimit -f unlimited".into(),
        page: "docs/guide/clusters.md#requirements-between-nodes",
    })
}

/// The memory of the control group.
fn control_group(limits: memory_limits::Limits) -> Option<Finding> {
    let least = limits.least();
    (least < limits.node && least < MEMORY_BYTES).then(|| Finding {
        severity: Severity::Warning,
        check: "control group",
        problem: format!(
            "the control group of this process may have {} of memory (memory.max): the ranks of \
             the node and their windows have to fit",
            mib(least)
        ),
        remedy: "ask for more memory in the job (--mem of Slurm), or raise memory.max".into(),
        page: "docs/reference/limits.md#memory-that-mpi-allocates",
    })
}

/// /dev/shm, which libfompi does not use.
fn shm() -> Option<Finding> {
    let problem = match rustix::fs::statvfs("/dev/shm") {
        Err(error) => format!("absent ({error})"),
        Ok(about) if about.f_bavail * about.f_frsize < SHM_BYTES => {
            format!(
                "{} are free, less than {}",
                mib(about.f_bavail * about.f_frsize),
                mib(SHM_BYTES)
            )
        }
        Ok(_) => return None,
    };
    Some(Finding {
        severity: Severity::Warning,
        check: "/dev/shm",
        problem: format!("{problem}: host MPIs keep their own segments there (libfompi does not)"),
        remedy: "mount a larger tmpfs there (docker run --shm-size), or delete old files".into(),
        page: "docs/guide/containers.md",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_found_from_their_values_on() {
        assert_eq!(descriptors(None), None);
        assert_eq!(descriptors(Some(DESCRIPTORS)), None);
        assert_eq!(descriptors(Some(64)).unwrap().check, "ulimit -n");
        assert_eq!(locked(Some(64 << 10), false), None);
        assert_eq!(locked(None, true), None);
        assert!(locked(Some(64 << 10), true).unwrap().problem.contains("64 KiB"));
        assert_eq!((address_space(None), file_bytes(None)), (None, None));
        assert!(file_bytes(Some(0)).unwrap().problem.contains("limited to 0 bytes"));
        assert!(address_space(Some(4 << 30)).unwrap().problem.contains("4096 MiB"));
    }
}
