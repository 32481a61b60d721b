//! Networks of this machine that an MPI may use without the kernel's TCP, as sysfs lists them.
//! Where there is one, windows that no RDMA device can carry fall back to the host MPI, because
//! such a network serves a target that polls faster than TCP.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Kinds of networks, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastNetworks(pub u64);

impl FastNetworks {
    /// an active port in /sys/class/infiniband
    pub const ACTIVE_PORT: u64 = 1;
    /// Slingshot: a device in /sys/class/cxi
    pub const CXI: u64 = 2;
    /// Omni-Path: a device hfi1 in /sys/class/infiniband
    pub const HFI1: u64 = 4;
    /// Elastic Fabric Adapter: a device efa in /sys/class/infiniband
    pub const EFA: u64 = 8;

    /// Returns the networks of this machine.
    pub fn here() -> FastNetworks {
        FastNetworks::listed_in(Path::new("/sys/class"))
    }

    /// Returns the networks that a folder with the classes of sysfs lists.
    fn listed_in(classes: &Path) -> FastNetworks {
        let infiniband = classes.join("infiniband");
        let cxi = if names_in(&classes.join("cxi")).is_empty() { 0 } else { FastNetworks::CXI };
        FastNetworks(names_in(&infiniband).iter().fold(cxi, |found, name| {
            let of_name = match name.as_encoded_bytes() {
                name if name.starts_with(b"hfi1") => FastNetworks::HFI1,
                name if name.starts_with(b"efa") => FastNetworks::EFA,
                _ => 0,
            };
            let ports = infiniband.join(name).join("ports");
            let active = names_in(&ports).iter().any(|port| is_active(&ports.join(port)));
            found | of_name | if active { FastNetworks::ACTIVE_PORT } else { 0 }
        }))
    }

    /// Returns the network interface for TCP over these networks, out of those of this machine that
    /// have an address: the one of a device, or one with a usual name, or the first one.
    pub fn interface(interfaces: &[String]) -> Option<&str> {
        FastNetworks::interface_in(Path::new("/sys/class"), interfaces)
    }

    /// Returns the interface by a folder with the classes of sysfs.
    fn interface_in<'a>(classes: &Path, interfaces: &'a [String]) -> Option<&'a str> {
        let devices = ["cxi", "infiniband"].iter().flat_map(|class| {
            let class = classes.join(class);
            names_in(&class).into_iter().map(move |device| class.join(device))
        });
        let own: Vec<_> = devices.flat_map(|device| names_in(&device.join("device/net"))).collect();
        let of_device = interfaces.iter().find(|name| own.iter().any(|own| *own == ***name));
        let usual = |start: &&str| interfaces.iter().find(|name| name.starts_with(*start));
        let found = of_device.or_else(|| USUAL_STARTS.iter().find_map(usual));
        found.or(interfaces.first()).map(String::as_str)
    }

    /// Returns what is found, in words, for a report; `None` for no network.
    pub fn text(self) -> Option<&'static str> {
        [
            (FastNetworks::CXI, "Slingshot (/sys/class/cxi)"),
            (FastNetworks::HFI1, "Omni-Path (hfi1 in /sys/class/infiniband)"),
            (FastNetworks::EFA, "an Elastic Fabric Adapter (efa in /sys/class/infiniband)"),
            (FastNetworks::ACTIVE_PORT, "an active port in /sys/class/infiniband"),
        ]
        .into_iter()
        .find_map(|(bit, text)| (self.0 & bit != 0).then_some(text))
    }
}

/// How interfaces of Slingshot, InfiniBand and Omni-Path are usually called.
const USUAL_STARTS: [&str; 3] = ["hsn", "ib", "opa"];

/// Returns the names in a folder; none if it is not there.
fn names_in(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

/// Whether the state of a port is "4: ACTIVE".
fn is_active(port: &Path) -> bool {
    fs::read_to_string(port.join("state")).is_ok_and(|state| state.trim().ends_with(": ACTIVE"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A folder with the classes of sysfs, removed at the end.
    struct Classes(PathBuf);

    impl Classes {
        fn new(name: &str) -> Classes {
            let folder = format!("fompi-classes-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(folder.join("net/eth0")).unwrap();
            Classes(folder)
        }

        fn add(self, device: &str) -> Classes {
            fs::create_dir_all(self.0.join(device)).unwrap();
            self
        }

        fn port(self, port: &str, state: &str) -> Classes {
            let port = self.0.join("infiniband").join(port);
            fs::create_dir_all(&port).unwrap();
            fs::write(port.join("state"), format!("{state}\n")).unwrap();
            self
        }

        fn found(&self) -> FastNetworks {
            FastNetworks::listed_in(&self.0)
        }
    }

    impl Drop for Classes {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn ethernet_alone_is_no_fast_network() {
        assert_eq!(Classes::new("ethernet").found(), FastNetworks(0));
        assert_eq!(FastNetworks(0).text(), None);
        assert_eq!(Classes::new("empty").add("infiniband").add("cxi").found(), FastNetworks(0));
    }

    #[test]
    fn an_infiniband_device_counts_while_a_port_of_it_is_active() {
        let down = Classes::new("ports").port("mlx5_0/ports/1", "1: DOWN");
        let down = down.port("mlx5_0/ports/2", "2: INIT").port("mlx5_1/ports/1", "3: ARMED");
        assert_eq!(down.found(), FastNetworks(0));
        let one_active = down.port("mlx5_1/ports/2", "4: ACTIVE");
        assert_eq!(one_active.found(), FastNetworks(FastNetworks::ACTIVE_PORT));
        assert!(one_active.found().text().unwrap().contains("active port"));
    }

    #[test]
    fn slingshot_omni_path_and_efa_count_by_their_names() {
        let all = [
            ("cxi/cxi0", FastNetworks::CXI, "Slingshot"),
            ("infiniband/hfi1_0", FastNetworks::HFI1, "Omni-Path"),
            ("infiniband/efa_0", FastNetworks::EFA, "Elastic Fabric Adapter"),
        ];
        for (device, bit, name) in all {
            let found = Classes::new(name).add(device).found();
            assert_eq!(found, FastNetworks(bit), "{device}");
            assert!(found.text().unwrap().contains(name), "{device}");
        }
    }

    #[test]
    fn tcp_uses_the_interface_of_the_device_or_one_with_a_usual_name() {
        let chosen = |classes: &Classes, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| String::from(*name)).collect();
            FastNetworks::interface_in(&classes.0, &names).map(str::to_owned)
        };
        let classes = Classes::new("interface").add("infiniband/mlx5_0/device/net/ens7f0");
        let of_device = chosen(&classes, &["eth0", "ib0", "ens7f0"]);
        assert_eq!(of_device.as_deref(), Some("ens7f0"));
        assert_eq!(chosen(&classes, &["eth0", "ibp1", "hsn0"]).as_deref(), Some("hsn0"));
        assert_eq!(chosen(&classes, &["eth0", "eth1"]).as_deref(), Some("eth0"));
        assert_eq!(chosen(&classes, &[]), None);
    }
}
