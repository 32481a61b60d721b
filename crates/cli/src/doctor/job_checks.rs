//! Checks of a job: what is wrong on each of its nodes, whether its nodes reach each other as the
//! library would, and whether they have the same library. The ranks exchange what they find by the
//! host MPI alone, so that a node without the library can tell.

use super::findings::{Finding, Report, Severity};
use crate::found_library::version_of;
use crate::launched_job::{self, JobNode, RankPlace, nodes_of};
use fompi_base::config::{self, Config, Net};
use fompi_fabric::net::{Contact, DeviceKind, Secret, Wire};
use fompi_selftest::job_group::JobGroup;
use fompi_sys::process;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::thread;

const PORTS: &str = "docs/guide/clusters.md#requirements-between-nodes";
/// Connections that are tried at once.
const AT_ONCE: usize = 64;

/// A rank, as it is before the nodes are known.
#[derive(Serialize, Deserialize)]
struct RankFacts {
    place: RankPlace,
    library: Option<LibraryFile>,
    findings: Vec<Finding>,
}

/// The library that a node has.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LibraryFile {
    version: String,
    path: String,
    /// a number that stands for its contents
    contents: u64,
}

/// How other nodes reach a rank.
#[derive(Serialize, Deserialize)]
struct RankContact {
    contact: Result<[u64; 16], String>,
    secret: Option<[u64; 2]>,
}

/// Runs the checks. Returns the findings on rank 0; if the ranks cannot exchange them, those of
/// rank 0 itself. If the MPI does not connect the ranks in time, passes these to `on_timeout`, and
/// ends this process. Collective.
pub fn all(
    own: &[Finding],
    library: Option<&Path>,
    on_timeout: impl FnOnce(Report) + Send,
) -> Option<Report> {
    let alone = |why| {
        config::is_first_rank().then(|| Report {
            findings: own.iter().cloned().chain([no_exchange(why)]).collect(),
            nodes: Vec::new(),
        })
    };
    let joined = launched_job::join(None, None, |why| {
        alone(why).map(on_timeout);
    });
    let checked = joined.and_then(|group| {
        let facts = RankFacts {
            place: RankPlace::own(group.rank()),
            library: library.map(LibraryFile::at),
            findings: own.to_vec(),
        };
        check(group, &facts)
    });
    checked.unwrap_or_else(alone)
}

fn no_exchange(why: String) -> Finding {
    Finding {
        severity: Severity::Error,
        check: "host MPI",
        problem: format!("the ranks cannot exchange what they find: {why}"),
        remedy: "run a program of that MPI on these nodes; its network or its launcher is at fault"
            .into(),
        page: "docs/guide/troubleshooting.md",
    }
}

fn check(group: JobGroup, own: &RankFacts) -> Result<Option<Report>, String> {
    let facts = launched_job::exchange(&group, own)?;
    let places: Vec<RankPlace> = facts.iter().map(|facts| facts.place.clone()).collect();
    let nodes = nodes_of(&places);
    let mut findings = of_nodes(&nodes, &facts);
    findings.extend(libraries(&nodes, &facts));
    if nodes.len() > 1 && Config::get().net.choice != Net::Off {
        findings.extend(connections(&group, &nodes)?);
    }
    let is_first = group.rank() == 0;
    group.end();
    let nodes = nodes.into_iter().map(|node| node.name).collect();
    Ok(is_first.then_some(Report { findings, nodes }))
}

/// The findings of the first rank of each node; with the names of the nodes, unless all have them.
fn of_nodes(nodes: &[JobNode], facts: &[RankFacts]) -> Vec<Finding> {
    let of = |node: &JobNode| &facts[node.ranks[0]].findings;
    let mut found: Vec<&Finding> = Vec::new();
    for finding in nodes.iter().flat_map(of) {
        if !found.contains(&finding) {
            found.push(finding);
        }
    }
    let named = |finding: &Finding| {
        let with = nodes.iter().filter(|node| of(node).contains(finding));
        let names: Vec<&str> = with.map(|node| node.name.as_str()).collect();
        let on = if names.len() == nodes.len() {
            String::new()
        } else {
            format!(" (on {})", names.join(", "))
        };
        Finding { problem: format!("{}{on}", finding.problem), ..finding.clone() }
    };
    found.into_iter().map(named).collect()
}

/// A library that is not the same on all nodes.
fn libraries(nodes: &[JobNode], facts: &[RankFacts]) -> Option<Finding> {
    let of = |node: &JobNode| facts[node.ranks[0]].library.as_ref();
    let first = nodes.iter().find_map(of)?;
    let is_same =
        |other: &LibraryFile| (other.contents, &other.version) == (first.contents, &first.version);
    if nodes.iter().filter_map(of).all(is_same) {
        return None;
    }
    let one = |node: &JobNode| {
        let LibraryFile { version, path, .. } = of(node)?;
        Some(format!("{version} ({path}) on {}", node.name))
    };
    let files: Vec<String> = nodes.iter().filter_map(one).collect();
    Some(Finding {
        severity: Severity::Error,
        check: "libfompi.so",
        problem: format!("the nodes have different files: {}", files.join("; ")),
        remedy: "install the same file on all nodes".into(),
        page: "docs/reference/environment.md#consistency-between-ranks",
    })
}

/// Ranks that cannot listen, and nodes that do not reach others. Collective.
fn connections(group: &JobGroup, nodes: &[JobNode]) -> Result<Vec<Finding>, String> {
    let wire = Wire::get(DeviceKind::Tcp).map_err(|error| error.to_string())?;
    let contact = wire.contact().map(|contact| contact.0).map_err(|error| error.to_string());
    let secret = match group.rank() {
        0 => Some(wire.secret().map_err(|error| error.to_string())?.words()),
        _ => None,
    };
    let contacts = launched_job::exchange(group, &RankContact { contact, secret })?;
    let secret = Secret::from(contacts[0].secret.unwrap_or_default());
    wire.admit(secret);
    // All processes know the secret before any is asked.
    group.gather("")?;
    let own = nodes.iter().position(|node| node.ranks[0] == group.rank());
    let others = nodes.iter().enumerate().filter(|(at, _)| own.is_some_and(|own| own != *at));
    let targets: Vec<(usize, Contact)> = others
        .filter_map(|(at, node)| {
            Some((at, Contact(*contacts[node.ranks[0]].contact.as_ref().ok()?)))
        })
        .collect();
    let failures: Vec<(usize, String)> =
        targets.chunks(AT_ONCE).flat_map(|targets| unreached(wire, secret, targets)).collect();
    let all: Vec<Vec<(usize, String)>> = launched_job::exchange(group, &failures)?;
    let silent = contacts.iter().enumerate().filter_map(|(rank, contact)| {
        let why = contact.contact.as_ref().err()?;
        let node = nodes.iter().find(|node| node.ranks.contains(&rank))?;
        Some(no_port(rank, &node.name, why))
    });
    let apart = nodes.iter().flat_map(|node| {
        let of_node = all[node.ranks[0]].iter();
        of_node.map(|(at, cause)| apart(&node.name, &nodes[*at].name, cause))
    });
    Ok(silent.chain(apart).collect())
}

/// The processes that are not reached, each by its number, with the causes.
fn unreached(wire: &Wire, secret: Secret, targets: &[(usize, Contact)]) -> Vec<(usize, String)> {
    thread::scope(|scope| {
        let ask = |(at, contact): &(usize, Contact)| {
            let (at, contact) = (*at, *contact);
            scope.spawn(move || Some((at, wire.reach(&contact, secret).err()?.to_string())))
        };
        let asked: Vec<_> = targets.iter().map(ask).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok()?).collect()
    })
}

fn no_port(rank: usize, node: &str, why: &str) -> Finding {
    Finding {
        severity: Severity::Error,
        check: "ports",
        problem: format!("rank {rank} on {node} cannot listen for other nodes: {why}"),
        remedy: "give FOMPI_NET_PORTS at least as many ports as a node has ranks, and \
                 FOMPI_NET_INTERFACE an interface that all nodes have"
            .into(),
        page: PORTS,
    }
}

/// How the error of a first contact begins, behind the name of the process.
const CAUSES: &str = "no first contact: ";

/// A node that does not reach another one. The likely cause follows from what the addresses answer.
fn apart(from: &str, to: &str, cause: &str) -> Finding {
    let cause = cause.split_once(CAUSES).map_or(cause, |(_, causes)| causes);
    // Each node has the loopback address, and no other node reaches it.
    let is_own = |cause: &&str| ["127.", "[::1]"].iter().any(|start| cause.starts_with(start));
    let causes: Vec<&str> = cause.split("; ").filter(|cause| !is_own(cause)).collect();
    let cause = if causes.is_empty() { cause.to_owned() } else { causes.join("; ") };
    let remedy = if cause.contains("does not answer") {
        "a firewall drops packets, or the interface is the wrong one: open the ports of \
         FOMPI_NET_PORTS on each node, or name an interface by FOMPI_NET_INTERFACE"
    } else if cause.contains("refused") || cause.contains("ermission denied") {
        "a firewall rejects connections: open the ports of FOMPI_NET_PORTS on each node"
    } else if cause.contains("another process") {
        "several machines have this address: name an interface by FOMPI_NET_INTERFACE"
    } else {
        "no route leads there, or a firewall rejects connections: name an interface that all nodes \
         have by FOMPI_NET_INTERFACE, or open the ports of FOMPI_NET_PORTS"
    };
    Finding {
        severity: Severity::Error,
        check: "connection",
        problem: format!("{from} does not reach {to}: {cause}"),
        remedy: remedy.into(),
        page: PORTS,
    }
}

impl LibraryFile {
    fn at(path: &Path) -> LibraryFile {
        let bytes = std::fs::read(path).unwrap_or_default();
        let version = version_of(path).unwrap_or_default();
        LibraryFile {
            version: version.trim_start_matches("libfompi version ").into(),
            path: path.display().to_string(),
            contents: process::number_of(&bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(problem: Option<&str>, contents: u64) -> RankFacts {
        let finding = |problem: &str| Finding {
            severity: Severity::Note,
            check: "c",
            problem: problem.into(),
            remedy: "r".into(),
            page: "p",
        };
        RankFacts {
            place: RankPlace::default(),
            library: Some(LibraryFile { version: "1".into(), path: "/l".into(), contents }),
            findings: problem.map(finding).into_iter().collect(),
        }
    }

    fn nodes() -> Vec<JobNode> {
        let node = |(name, rank): (&str, usize)| JobNode { name: name.into(), ranks: vec![rank] };
        [("a", 0), ("b", 1)].map(node).into()
    }

    #[test]
    fn a_finding_of_some_nodes_names_them() {
        let problems = |ranks: &[RankFacts]| {
            of_nodes(&nodes(), ranks).into_iter().map(|one| one.problem).collect::<Vec<_>>()
        };
        assert_eq!(problems(&[rank(Some("x"), 1), rank(Some("x"), 1)]), ["x"]);
        assert_eq!(problems(&[rank(None, 1), rank(Some("x"), 1)]), ["x (on b)"]);
    }

    #[test]
    fn a_library_that_differs_is_found() {
        let found = |contents| {
            let ranks = [rank(None, 1), rank(None, contents)];
            libraries(&nodes(), &ranks).map(|finding| finding.problem)
        };
        assert_eq!(found(1), None);
        let expected = "the nodes have different files: 1 (/l) on a; 1 (/l) on b";
        assert_eq!(found(2).as_deref(), Some(expected));
    }

    #[test]
    fn the_cause_of_each_address_leads_to_a_remedy() {
        let found = |causes: &str| {
            let cause = format!("process 7 on node b cannot be reached: {CAUSES}{causes}");
            let finding = apart("a", "b", &cause);
            (finding.problem, finding.remedy)
        };
        let (problem, remedy) =
            found("127.0.0.1:7: Connection refused; 10.0.0.2:7 does not answer");
        assert_eq!(problem, "a does not reach b: 10.0.0.2:7 does not answer");
        assert!(remedy.starts_with("a firewall drops packets"));
        for (cause, start) in [
            ("10.0.0.2:7: Connection refused (os error 111)", "a firewall rejects"),
            ("172.17.0.1:7 is another process", "several machines"),
            ("10.0.0.2:7: No route to host (os error 113)", "no route"),
        ] {
            assert!(found(cause).1.starts_with(start), "{cause}");
        }
    }
}
