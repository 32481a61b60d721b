//! Networks between nodes: interfaces, ports, RDMA devices.

use super::findings::{FileRoot, Finding, Severity};
use super::gid_checks;
use crate::fast_network::HostFallback;
use fompi_base::config::{Config, Net};
use fompi_fabric::net::{interfaces, why_no_device};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const RDMA: &str = "docs/concepts/nodes.md#which-transport";
const PORTS: &str = "docs/guide/clusters.md#requirements-between-nodes";

/// The longest wait for a connection to an own address.
const CONNECT: Duration = Duration::from_secs(1);

/// Returns the findings about networks.
pub fn all(root: &FileRoot) -> Vec<Finding> {
    if Config::get().net.choice == Net::Off {
        return Vec::new();
    }
    let mut findings = interface_and_ports(interfaces().unwrap_or_default());
    if Config::get().net.tries_verbs() {
        findings.extend(gid_checks::all(root));
    }
    findings.extend(rdma(root));
    findings.extend(fast_network());
    findings
}

/// The interface for TCP, and the ports that processes listen on.
fn interface_and_ports(found: Vec<(String, Ipv6Addr)>) -> Vec<Finding> {
    let net = &Config::get().net;
    let of = |severity, check, problem: String, remedy: String| Finding {
        severity,
        check,
        problem,
        remedy,
        page: PORTS,
    };
    let usable: Vec<_> =
        found.into_iter().filter(|(_, address)| !address.to_canonical().is_loopback()).collect();
    let names: Vec<_> = usable.iter().map(|(name, _)| name.as_str()).collect();
    let wanted = net.interface.as_deref();
    let own = usable.iter().find(|(name, _)| wanted.is_none_or(|wanted| wanted == name));
    let Some((name, address)) = own else {
        return vec![match wanted {
            Some(wanted) => of(
                Severity::Error,
                "FOMPI_NET_INTERFACE",
                format!("no interface {wanted} with an address; there are: {}", names.join(", ")),
                "name one of these, or unset it".into(),
            ),
            None => of(
                Severity::Note,
                "network",
                "no interface but loopback: other nodes cannot be reached".into(),
                "give the container the network of the host (--network host)".into(),
            ),
        }];
    };
    let range = net.ports.map_or(0..=0, |ports| ports.low..=ports.high);
    let text = net.ports.map_or("any port".into(), |ports| {
        format!("the ports {} to {} (FOMPI_NET_PORTS)", ports.low, ports.high)
    });
    let listener =
        range.clone().find_map(|port| TcpListener::bind((address.to_canonical(), port)).ok());
    let Some(listener) = listener else {
        return vec![of(
            Severity::Error,
            "ports",
            format!("cannot listen on {text} of {name}: all are in use or forbidden"),
            "choose another range (FOMPI_NET_PORTS), and open it in the firewall".into(),
        )];
    };
    let at = listener.local_addr().unwrap_or(SocketAddr::from((address.to_canonical(), 0)));
    TcpStream::connect_timeout(&at, CONNECT)
        .err()
        .map(|error| {
            of(
                Severity::Error,
                "firewall",
                format!("no connection to {at} of this node's own {name} ({error})"),
                "open the ports of FOMPI_NET_PORTS in the firewall of each node".into(),
            )
        })
        .into_iter()
        .collect()
}

/// RDMA devices that the kernel lists and the library cannot open.
fn rdma(root: &FileRoot) -> Option<Finding> {
    let devices = root.names("sys/class/infiniband");
    let is_demanded = Config::get().net.choice == Net::Verbs;
    if devices.is_empty() && !is_demanded {
        return None;
    }
    let error = why_no_device()?;
    let has_file = root.has_device_files();
    let severity = if is_demanded { Severity::Error } else { Severity::Warning };
    let remedy = if devices.is_empty() {
        "load the driver of the adapter, or unset FOMPI_NET"
    } else if !has_file {
        "load ib_uverbs, and give the container the devices (--device /dev/infiniband)"
    } else {
        "check `ibv_devinfo`: the driver, the state of the port, its GIDs, and ulimit -l"
    };
    Some(Finding {
        severity,
        check: if has_file || devices.is_empty() { "RDMA device" } else { "/dev/infiniband" },
        problem: format!("{}: {error}", devices.first().map_or("none", String::as_str)),
        remedy: remedy.into(),
        page: RDMA,
    })
}

/// A network that libfompi cannot drive, where windows over several nodes fall back.
fn fast_network() -> Option<Finding> {
    let HostFallback { problem, remedy } = HostFallback::here()?;
    Some(Finding { severity: Severity::Warning, check: "network", problem, remedy, page: RDMA })
}
