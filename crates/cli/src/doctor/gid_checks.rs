//! GID tables of RDMA ports: the addresses by which other nodes reach a port.

use super::findings::{FileRoot, Finding, Severity};
use fompi_base::config::Config;
use std::net::Ipv6Addr;

const PAGE: &str = "docs/guide/clusters.md#requirements-between-nodes";
const DEVICES: &str = "sys/class/infiniband";

/// A GID of a port.
struct Gid {
    index: usize,
    /// whether it is of RoCE version 1, whose packets no router forwards
    is_version_1: bool,
}

/// Returns the findings about the active ports, or about the one that the settings select.
pub fn all(root: &FileRoot) -> Vec<Finding> {
    let verbs = &Config::get().net.verbs;
    let mut findings = Vec::new();
    for device in root.names(DEVICES) {
        for port in root.names(&format!("{DEVICES}/{device}/ports")) {
            let is_other = verbs.device.as_ref().is_some_and(|wanted| *wanted != device)
                || verbs.port.is_some_and(|wanted| wanted.to_string() != port);
            if !is_other {
                findings.extend(of_port(root, &device, &port, verbs.gid.map(usize::from)));
            }
        }
    }
    findings
}

fn of_port(root: &FileRoot, device: &str, port: &str, wanted: Option<usize>) -> Option<Finding> {
    let folder = format!("{DEVICES}/{device}/ports/{port}");
    let entries = root.names(&format!("{folder}/gids"));
    if entries.is_empty() || !root.text(&format!("{folder}/state")).ends_with("ACTIVE") {
        return None;
    }
    let gids: Vec<_> = entries.iter().filter_map(|index| gid(root, &folder, index)).collect();
    let is_ethernet = root.text(&format!("{folder}/link_layer")) == "Ethernet";
    let name = format!("{device}:{port}");
    let (severity, problem, remedy) = if let Some(wanted) = wanted
        && gids.iter().all(|gid| gid.index != wanted)
    {
        let used: Vec<_> = gids.iter().map(|gid| gid.index.to_string()).collect();
        (
            Severity::Error,
            format!("FOMPI_VERBS_GID={wanted} is empty on {name}; it has {}", used.join(", ")),
            "name one of these, or unset FOMPI_VERBS_GID",
        )
    } else if gids.is_empty() {
        (
            Severity::Warning,
            format!("{name} is active, and its GID table is empty: no node reaches it"),
            if is_ethernet {
                "give the network interface of the port an address, and set it up (ip link)"
            } else {
                "start the subnet manager"
            },
        )
    } else if is_ethernet && gids.iter().all(|gid| gid.is_version_1) {
        (
            Severity::Warning,
            format!("{name} has GIDs of RoCE version 1 only, whose packets no router forwards"),
            "give the network interface of the port an IPv4 address",
        )
    } else {
        return None;
    };
    Some(Finding { severity, check: "GID", problem, remedy: remedy.into(), page: PAGE })
}

/// Returns an entry of the table; `None` if it is empty.
fn gid(root: &FileRoot, folder: &str, index: &str) -> Option<Gid> {
    let address: Ipv6Addr = root.text(&format!("{folder}/gids/{index}")).parse().ok()?;
    let kind = root.text(&format!("{folder}/gid_attrs/types/{index}"));
    let index = index.parse().ok().filter(|_| !address.is_unspecified())?;
    Some(Gid { index, is_version_1: kind == "IB/RoCE v1" })
}

#[cfg(test)]
mod tests {
    use super::super::findings::TestRoot;
    use super::*;

    const EMPTY: &str = "0000:0000:0000:0000:0000:0000:0000:0000\n";
    const LOCAL: &str = "fe80:0000:0000:0000:0202:c9ff:fe1d:0001\n";

    /// The problem of a port of RoCE whose first two entries and their types are these.
    fn problem(name: &str, gids: [(&str, &str); 2], wanted: Option<usize>) -> Option<String> {
        let port = "sys/class/infiniband/mlx5_0/ports/1";
        let path = |file: &str| format!("{port}/{file}");
        let files = [
            (path("state"), "4: ACTIVE"),
            (path("link_layer"), "Ethernet"),
            (path("gids/0"), gids[0].0),
            (path("gid_attrs/types/0"), gids[0].1),
            (path("gids/1"), gids[1].0),
            (path("gid_attrs/types/1"), gids[1].1),
        ];
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = TestRoot::new(name, &files);
        of_port(&root.root(), "mlx5_0", "1", wanted).map(|finding| finding.problem)
    }

    #[test]
    fn a_port_needs_a_gid_that_routers_forward() {
        let version_1 = (LOCAL, "IB/RoCE v1\n");
        let version_2 = (LOCAL, "RoCE v2\n");
        let empty = (EMPTY, "");
        assert_eq!(problem("both", [version_1, version_2], None), None);
        let found = problem("none", [empty, empty], None).unwrap();
        assert!(found.starts_with("mlx5_0:1 is active, and its GID table is empty"), "{found}");
        let found = problem("old", [version_1, empty], None).unwrap();
        assert!(found.contains("RoCE version 1 only"), "{found}");
    }

    #[test]
    fn a_gid_that_the_settings_name_must_be_there() {
        let gids = [(LOCAL, "RoCE v2\n"), (EMPTY, "")];
        assert_eq!(problem("named", gids, Some(0)), None);
        let found = problem("wrong", gids, Some(1)).unwrap();
        assert_eq!(found, "FOMPI_VERBS_GID=1 is empty on mlx5_0:1; it has 0");
    }
}
