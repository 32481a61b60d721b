//! Facts of this machine that decide which transports windows use, each with the reason why
//! something cannot be used. The transport between nodes is chosen by the library's own code.

use crate::fast_network::HostFallback;
use fompi_base::config::{Adopt, Config};
use fompi_fabric::net::{DeviceChoice, DeviceKind, DeviceOffer, interfaces, why_no_device};
use fompi_sys::fast_networks::FastNetworks;
use fompi_sys::memory_limits;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// A row of the report about this machine.
#[derive(Debug, Serialize)]
pub struct MachineFact {
    /// its name, which does not change between versions
    name: &'static str,
    /// what was found
    value: String,
    /// why windows cannot use it; null if they can
    why_not: Option<String>,
}

impl MachineFact {
    fn new(name: &'static str, value: impl Into<String>, why_not: Option<String>) -> MachineFact {
        MachineFact { name, value: value.into(), why_not }
    }

    /// The line about it.
    pub fn line(&self) -> String {
        let why_not = self.why_not.iter().map(|why| format!(" (why not: {why})"));
        format!("    {}: {}{}", self.name, self.value, why_not.collect::<String>())
    }
}

/// Returns all facts.
pub fn all() -> Vec<MachineFact> {
    let kernel = kernel();
    let limit = memory_limits::least();
    let mut facts = vec![
        MachineFact::new("kernel", kernel.clone(), None),
        adoption(&kernel),
        process_vm(&read("/proc/sys/kernel/yama/ptrace_scope")),
        userfaultfd(&read("/proc/sys/vm/unprivileged_userfaultfd")),
        MachineFact::new("memory", format!("{} at most for the ranks", size(limit)), None),
        shm(),
    ];
    facts.extend(network_interfaces());
    facts.push(rdma_device());
    facts.extend(rdma_ports(Path::new("/sys/class/infiniband")));
    facts.push(MachineFact::new(
        "fast network",
        FastNetworks::here().text().unwrap_or("none"),
        None,
    ));
    facts.push(between_nodes());
    facts
}

/// The release of the kernel.
pub fn kernel() -> String {
    read("/proc/sys/kernel/osrelease")
}

/// The text of a file of the kernel; empty if it is absent.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Bytes in the largest unit that does not exceed them.
pub fn size(bytes: u64) -> String {
    let (unit, shift) = [("GiB", 30), ("MiB", 20), ("KiB", 10)]
        .into_iter()
        .find(|(_, shift)| bytes >> shift > 0)
        .unwrap_or(("bytes", 0));
    let tenths = (u128::from(bytes) * 10) >> shift;
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// The first two numbers of a release of the kernel.
fn release_of(kernel: &str) -> (u32, u32) {
    let mut numbers = kernel.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    (next(), next())
}

/// Whether pages of windows of MPI_Win_create become shared memory (docs/internals/adoption.md).
fn adoption(kernel: &str) -> MachineFact {
    let why_not = why_no_adoption(kernel);
    let value = if why_not.is_none() { "possible" } else { "no" };
    MachineFact::new("adopted memory", value, why_not)
}

/// Returns why no pages of windows of MPI_Win_create become shared memory with this kernel.
pub fn why_no_adoption(kernel: &str) -> Option<String> {
    let consent = Config::get().adopt;
    let oldest = if consent == Adopt::Always { (6, 1) } else { (6, 5) };
    if consent == Adopt::Never {
        Some("FOMPI_ADOPT=never".into())
    } else if release_of(kernel) < oldest {
        Some(format!("Linux {}.{} or newer is needed", oldest.0, oldest.1))
    } else if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        Some("the kernel has no transparent huge pages".into())
    } else if memory_limits::are_strict() {
        Some("vm.overcommit_memory=2".into())
    } else {
        None
    }
}

/// Whether Yama permits process_vm_readv and process_vm_writev.
fn process_vm(scope: &str) -> MachineFact {
    let (value, why_not) = match scope {
        "" => ("permitted between processes of a user (no Yama)", None),
        "0" => ("permitted between processes of a user (kernel.yama.ptrace_scope=0)", None),
        "1" => ("permitted to descendants of the launcher (kernel.yama.ptrace_scope=1)", None),
        _ => ("no", Some(format!("kernel.yama.ptrace_scope={scope}: set it to 0 or 1"))),
    };
    MachineFact::new("process_vm", value, why_not)
}

/// The fact about userfaultfd(2), which libfompi itself does not use.
fn userfaultfd(unprivileged: &str) -> MachineFact {
    let value = match unprivileged {
        "" => "absent",
        "0" => "for root, and for faults in user mode",
        _ => "for all users",
    };
    MachineFact::new("userfaultfd", format!("{value}; not used by libfompi"), None)
}

fn shm() -> MachineFact {
    let name = "/dev/shm";
    match rustix::fs::statvfs(name) {
        Ok(about) => {
            let (all, free) = (about.f_blocks * about.f_frsize, about.f_bavail * about.f_frsize);
            let value = format!("{}, {} free; not used by libfompi", size(all), size(free));
            MachineFact::new(name, value, None)
        }
        Err(error) => MachineFact::new(name, "absent", Some(error.to_string())),
    }
}

fn network_interfaces() -> Vec<MachineFact> {
    let found = match interfaces() {
        Ok(found) => found,
        Err(error) => return vec![MachineFact::new("interface", "none", Some(error.to_string()))],
    };
    let wanted = Config::get().net.interface.as_deref();
    let fact = |(interface, address): (String, std::net::Ipv6Addr)| {
        let address = address.to_canonical();
        let why_not = match wanted {
            Some(wanted) if wanted != interface => Some(format!("FOMPI_NET_INTERFACE={wanted}")),
            _ if address.is_loopback() => Some("other nodes cannot reach it".into()),
            _ => None,
        };
        MachineFact::new("interface", format!("{interface} {address}"), why_not)
    };
    found.into_iter().map(fact).collect()
}

/// Whether the library opens an RDMA device here.
fn rdma_device() -> MachineFact {
    match why_no_device() {
        None => MachineFact::new("RDMA device", "opened by libibverbs", None),
        Some(error) => MachineFact::new("RDMA device", "none", Some(error.to_string())),
    }
}

/// The ports of the devices that a folder lists.
fn rdma_ports(folder: &Path) -> Vec<MachineFact> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|one| one.file_name().into_string().ok()).collect();
        names.sort();
        names
    };
    let mut facts = Vec::new();
    for device in names(folder) {
        let ports = folder.join(&device).join("ports");
        for port in names(&ports) {
            let text = |name: &str| {
                fs::read_to_string(ports.join(&port).join(name))
                    .unwrap_or_default()
                    .trim()
                    .to_owned()
            };
            let state = text("state");
            let why_not = (!state.ends_with("ACTIVE")).then(|| format!("its state is {state}"));
            let value = format!("{device}:{port}, {}, {}", text("link_layer"), text("rate"));
            facts.push(MachineFact::new("RDMA port", value, why_not));
        }
    }
    facts
}

/// The transport of windows over several nodes like this one.
fn between_nodes() -> MachineFact {
    let offer = DeviceOffer::own();
    let (value, why_not) = match DeviceChoice::of(&[offer, offer]) {
        DeviceChoice::Use(DeviceKind::Verbs, _) => ("RDMA", None),
        DeviceChoice::Use(DeviceKind::Tcp, _) => ("TCP", None),
        DeviceChoice::Off => ("host MPI", Some("FOMPI_NET=off".into())),
        DeviceChoice::NoDevice(_) | DeviceChoice::Links => {
            ("host MPI", Some("FOMPI_NET=verbs, and there is no RDMA device".into()))
        }
        DeviceChoice::Fast(..) => {
            let why = HostFallback::here().map(|why| format!("{}; {}", why.problem, why.remedy));
            ("host MPI", why)
        }
    };
    MachineFact::new("windows over several nodes like this one", value, why_not)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_the_largest_unit_that_fits() {
        let sizes =
            [(0, "0.0 bytes"), (1023, "1023.0 bytes"), (1536, "1.5 KiB"), (64 << 20, "64.0 MiB")];
        for (bytes, text) in sizes {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(size(u64::MAX), "17179869183.9 GiB");
    }

    #[test]
    fn a_release_of_the_kernel_has_two_numbers() {
        assert_eq!(release_of("6.1.0-18-amd64"), (6, 1));
        assert_eq!(
            (release_of("5.15.0"), release_of(""), release_of("6")),
            ((5, 15), (0, 0), (6, 0))
        );
    }

    #[test]
    fn yama_forbids_copies_from_two_on() {
        for scope in ["", "0", "1"] {
            assert_eq!(process_vm(scope).why_not, None);
        }
        let why_not = process_vm("2").why_not.unwrap();
        assert!(why_not.starts_with("kernel.yama.ptrace_scope=2"), "{why_not}");
    }

    #[test]
    fn a_port_that_is_down_has_a_reason() {
        let folder = std::env::temp_dir().join(format!("fompi-ports-{}", std::process::id()));
        for (port, state) in [("1", "4: ACTIVE"), ("2", "1: DOWN")] {
            let port = folder.join("mlx5_0/ports").join(port);
            fs::create_dir_all(&port).unwrap();
            for (name, text) in
                [("state", state), ("link_layer", "InfiniBand"), ("rate", "100 Gb/sec")]
            {
                fs::write(port.join(name), format!("{text}\n")).unwrap();
            }
        }
        let facts = rdma_ports(&folder);
        fs::remove_dir_all(&folder).unwrap();
        let lines: Vec<String> = facts.iter().map(MachineFact::line).collect();
        let expected = [
            "    RDMA port: mlx5_0:1, InfiniBand, 100 Gb/sec",
            "    RDMA port: mlx5_0:2, InfiniBand, 100 Gb/sec (why not: its state is 1: DOWN)",
        ];
        assert_eq!(lines, expected);
    }
}
