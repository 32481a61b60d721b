//! What the kernel, its security modules and its namespaces allow.

use super::findings::{FileRoot, Finding, Severity};
use crate::info::machine_facts::why_no_adoption;
use fompi_base::config::{Adopt, Config};
use fompi_sys::{memfd, memory_limits, vm};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use std::fmt::Display;

const CONTAINERS: &str = "docs/guide/containers.md";
const LIMITS: &str = "docs/reference/limits.md#memory-of-the-program";

/// The capability of ptrace(2), a bit of CapEff.
const CAP_SYS_PTRACE: u32 = 19;
/// The inodes of the first namespaces (include/linux/proc_ns.h).
const FIRST_NAMESPACES: [(&str, &str); 2] = [("pid", "4026531836"), ("user", "4026531837")];

/// Returns the findings about the kernel.
pub fn all(root: &FileRoot) -> Vec<Finding> {
    let segment = memfd::create(c"fompi-doctor").map(drop);
    let calls = [
        refused("memfd_create", segment, Severity::Error),
        refused("process_vm_readv", vm::read_own_word(), Severity::Warning),
        refused("pidfd_open", open_own_pidfd(), Severity::Warning),
    ];
    let others = [proc_of_another_namespace(root), ptrace_scope(root), deny_ptrace(root)];
    let mut findings: Vec<_> = calls.into_iter().chain(others).flatten().collect();
    findings.extend(adoption(root));
    findings.extend(namespaces(root));
    findings
}

fn open_own_pidfd() -> rustix::io::Result<()> {
    pidfd_open(getpid(), PidfdFlags::empty()).map(drop)
}

/// A system call that a seccomp filter refuses, or that the kernel lacks.
fn refused<E: Display>(call: &str, result: Result<(), E>, severity: Severity) -> Option<Finding> {
    let error = result.err()?;
    let loss = match call {
        "memfd_create" => "no window can be made",
        "process_vm_readv" => "windows over memory of the program use RDMA or TCP on one node, too",
        _ => "the end of a process is noticed later",
    };
    Some(Finding {
        severity,
        check: "seccomp",
        problem: format!("the system call {call} fails here ({error}): {loss}"),
        remedy: format!("allow {call} in the seccomp profile of the container or of the service"),
        page: CONTAINERS,
    })
}

/// A /proc that shows other processes than those of this PID namespace.
fn proc_of_another_namespace(root: &FileRoot) -> Option<Finding> {
    let stat = root.text("proc/self/stat");
    let pid = stat.split(' ').next().unwrap_or_default();
    let own = std::process::id().to_string();
    (pid != own).then(|| Finding {
        severity: Severity::Error,
        check: "/proc",
        problem: match pid {
            "" => "/proc is not mounted: ranks do not find each other's memory".into(),
            pid => format!(
                "/proc is that of another PID namespace: it calls this process {pid}, and its \
                 number is {own}"
            ),
        },
        remedy: "mount the /proc of this PID namespace (unshare --mount-proc)".into(),
        page: CONTAINERS,
    })
}

/// Whether this process may inspect others whatever Yama says.
fn has_ptrace(root: &FileRoot) -> bool {
    let status = root.text("proc/self/status");
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> CAP_SYS_PTRACE & 1 == 1)
}

/// Yama, which may forbid copies from and to other processes.
fn ptrace_scope(root: &FileRoot) -> Option<Finding> {
    let scope = root.text("proc/sys/kernel/yama/ptrace_scope");
    let is_forbidden = scope == "3" || scope == "2" && !has_ptrace(root);
    is_forbidden.then(|| Finding {
        severity: Severity::Warning,
        check: "Yama",
        problem: format!(
            "kernel.yama.ptrace_scope is {scope} (0 or 1 is needed): process_vm is forbidden, so \
             windows over memory of the program use RDMA or TCP on one node, too"
        ),
        remedy: match scope.as_str() {
            "3" => "remove kernel.yama.ptrace_scope=3 from sysctl.d and restart the node".into(),
            _ => "sysctl kernel.yama.ptrace_scope=1, or the capability SYS_PTRACE".into(),
        },
        page: LIMITS,
    })
}

/// SELinux's boolean, which has the same effect.
fn deny_ptrace(root: &FileRoot) -> Option<Finding> {
    root.text("sys/fs/selinux/booleans/deny_ptrace").starts_with('1').then(|| Finding {
        severity: Severity::Warning,
        check: "SELinux",
        problem: "the boolean deny_ptrace is on: process_vm is forbidden".into(),
        remedy: "setsebool deny_ptrace off".into(),
        page: LIMITS,
    })
}

/// Why pages of windows of MPI_Win_create are not adopted, unless the user wants it so.
fn adoption(root: &FileRoot) -> Option<Finding> {
    if Config::get().adopt == Adopt::Never {
        return None;
    }
    let why = why_no_adoption(&root.text("proc/sys/kernel/osrelease"))?;
    let remedy = match memory_limits::are_strict() {
        true => "sysctl vm.overcommit_memory=0",
        false => "use memory of MPI_Win_allocate or MPI_Alloc_mem",
    };
    Some(Finding {
        severity: Severity::Note,
        check: "adopted memory",
        problem: format!(
            "{why}: windows over memory of malloc are reached by process_vm, a system call for \
             each access"
        ),
        remedy: remedy.into(),
        page: "docs/concepts/memory.md#adopted-memory",
    })
}

/// Namespaces of a container.
fn namespaces(root: &FileRoot) -> Vec<Finding> {
    let is_own = |(name, first): (&'static str, &str)| {
        let link = std::fs::read_link(root.path(&format!("proc/self/ns/{name}"))).ok()?;
        (!link.to_str()?.contains(first)).then_some(name)
    };
    let own: Vec<_> = FIRST_NAMESPACES.into_iter().filter_map(is_own).collect();
    if own.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        severity: Severity::Note,
        check: "namespaces",
        problem: format!(
            "this process is in a namespace of its own ({}): ranks in several of these reach \
             memory of the program by RDMA or TCP, on one node, too",
            own.join(" and ")
        ),
        remedy: "start all ranks of a node in one container".into(),
        page: CONTAINERS,
    }]
}

#[cfg(test)]
mod tests {
    use super::super::findings::TestRoot;
    use super::*;

    #[test]
    fn yama_forbids_copies_from_two_on_unless_ptrace_is_allowed() {
        let scope = "proc/sys/kernel/yama/ptrace_scope";
        let (can, cannot) = ("CapEff:\t0000000000080000\n", "CapEff:\t0000000000000000\n");
        for (value, status, is_found) in [
            ("0", cannot, false),
            ("1", cannot, false),
            ("2", can, false),
            ("2", cannot, true),
            ("3", can, true),
        ] {
            let files = [(scope, value), ("proc/self/status", status)];
            let root = TestRoot::new(&format!("yama-{value}-{is_found}"), &files);
            assert_eq!(ptrace_scope(&root.root()).is_some(), is_found, "{value} {status}");
        }
    }

    #[test]
    fn proc_of_another_namespace_is_noticed() {
        let own = std::process::id().to_string();
        for (name, stat, is_found) in
            [("own", format!("{own} (x) R"), false), ("other", "1 (x) R".into(), true)]
        {
            let root = TestRoot::new(name, &[("proc/self/stat", &stat)]);
            assert_eq!(proc_of_another_namespace(&root.root()).is_some(), is_found);
        }
        let root = TestRoot::new("no-proc", &[("dev/null", "")]);
        let found = proc_of_another_namespace(&root.root()).unwrap();
        assert!(found.problem.starts_with("/proc is not mounted"), "{found:?}");
    }

    #[test]
    fn a_refused_call_is_named() {
        let denied = Err(rustix::io::Errno::PERM);
        let found = refused("memfd_create", denied, Severity::Error).unwrap();
        assert!(found.problem.contains("memfd_create"), "{found:?}");
        let allowed: Result<(), rustix::io::Errno> = Ok(());
        assert_eq!(refused("memfd_create", allowed, Severity::Error), None);
    }
}
