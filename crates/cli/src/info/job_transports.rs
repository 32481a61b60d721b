//! The transports of windows of this job's ranks, for `fompi info`: makes a few windows, and
//! reports their transports, and the library's reasons why it uses no faster ones.

use super::machine_facts::{kernel, size, why_no_adoption};
use crate::launched_job::{self, JobNode, RankPlace, named, nodes_of};
use fompi_base::config::{self, Config, Net};
use fompi_fabric::layout::RANKS_MAX;
use fompi_fabric::net::why_no_device;
use fompi_selftest::job_group::{GroupWindow, JobGroup, WindowAnswer};
use fompi_sys::memory_limits;
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The memory of each rank in a window of the report.
const BYTES: usize = 1 << 20;
/// The windows of the report, by the calls that make them.
const WINDOWS: [(&str, GroupWindow); 2] =
    [("MPI_Win_allocate", GroupWindow::Allocate), ("MPI_Win_create", GroupWindow::Create)];

/// The job, as `--json` prints it.
#[derive(Default, Serialize)]
pub struct JobTransports {
    /// why the ranks cannot be asked; the other members are empty then
    why_not: Option<String>,
    ranks: usize,
    mpi: String,
    abi: &'static str,
    mpi_library: String,
    nodes: Vec<NodeReport>,
    /// windows of all ranks, if they are on several nodes
    between_nodes: Vec<WindowReport>,
    /// ranks that do not use RDMA, with the reasons
    without_rdma: Vec<WithoutRdma>,
    /// the most ranks of a window
    ranks_max: u32,
}

#[derive(Serialize)]
struct NodeReport {
    name: String,
    ranks: Vec<usize>,
    windows: Vec<WindowReport>,
    limits: RankLimits,
}

/// The windows that one call makes.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct WindowReport {
    call: &'static str,
    /// "host MPI" if libfompi does not serve them
    transport: String,
    /// why no faster one is used, in the words of the library
    why_not: Vec<String>,
}

/// Ranks that use no RDMA device for the same reason.
#[derive(Serialize)]
struct WithoutRdma {
    ranks: Vec<usize>,
    why_not: String,
}

/// Limits of a process. `None`: no limit.
#[derive(Clone, Default, Serialize, Deserialize)]
struct RankLimits {
    /// bytes of memory for all ranks of the node
    memory_bytes: u64,
    open_files: Option<u64>,
    locked_bytes: Option<u64>,
    /// processors that the rank may run on
    processors: usize,
}

/// The facts that a rank finds without the others.
#[derive(Default, Serialize, Deserialize)]
struct RankFacts {
    place: RankPlace,
    limits: RankLimits,
    /// why it uses no RDMA device
    without_rdma: Option<String>,
    /// why it adopts no memory, whatever the window
    without_adoption: Option<String>,
}

/// What the library reports on a rank about the windows of its node, and about those of all ranks.
#[derive(Default, Serialize, Deserialize)]
struct Answers {
    of_node: Vec<WindowAnswer>,
    of_all: Vec<WindowAnswer>,
}

/// Makes the windows of the report on all ranks, which `mpi` connects, or the MPI of the launcher.
/// Returns the report on rank 0; if the ranks cannot be asked, it has the reason. If the MPI does
/// not connect them in time, passes that report to `on_timeout`, and ends this process. Collective.
pub fn collect(
    library: Option<&Path>,
    mpi: Result<Option<&Path>, &str>,
    on_timeout: impl FnOnce(JobTransports) + Send,
) -> Option<JobTransports> {
    let without = |why| {
        config::is_first_rank()
            .then(|| JobTransports { why_not: Some(why), ..JobTransports::default() })
    };
    let Some(library) = library else { return without("there is no libfompi.so".into()) };
    let mpi = match mpi {
        Ok(mpi) => mpi,
        Err(why) => return without(why.into()),
    };
    let joined = launched_job::join(Some(library), mpi, |why| {
        without(why).map(on_timeout);
    });
    joined.and_then(ask).unwrap_or_else(without)
}

fn ask(group: JobGroup) -> Result<Option<JobTransports>, String> {
    let facts: Vec<RankFacts> = launched_job::exchange(&group, &own_facts(group.rank()))?;
    let places: Vec<RankPlace> = facts.iter().map(|facts| facts.place.clone()).collect();
    let nodes = nodes_of(&places);
    let own = nodes.iter().position(|node| node.ranks.contains(&group.rank())).unwrap_or(0);
    // The sizes differ, because the library does not repeat a line.
    let window = |group_number, bytes| {
        WINDOWS.map(|(_, kind)| group.window(group_number, kind, bytes)).to_vec()
    };
    let of_node = window(own, BYTES);
    let of_all = if nodes.len() > 1 { window(0, 2 * BYTES) } else { Vec::new() };
    let answers: Vec<Answers> = launched_job::exchange(&group, &Answers { of_node, of_all })?;
    let report = (group.rank() == 0).then(|| report(&group, &facts, &nodes, &answers));
    group.end();
    Ok(report)
}

fn own_facts(rank: usize) -> RankFacts {
    let net = &Config::get().net;
    let without_rdma = match (net.tries_verbs(), net.choice) {
        (true, _) => why_no_device().map(|error| error.to_string()),
        (false, Net::Auto) => Some("FOMPI_VERBS=off".into()),
        (false, choice) => Some(format!("FOMPI_NET={}", choice.name())),
    };
    let limits = RankLimits {
        memory_bytes: memory_limits::least(),
        open_files: getrlimit(Resource::Nofile).current,
        locked_bytes: getrlimit(Resource::Memlock).current,
        processors: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let without_adoption = why_no_adoption(&kernel());
    RankFacts { place: RankPlace::own(rank), limits, without_rdma, without_adoption }
}

fn report(
    group: &JobGroup,
    facts: &[RankFacts],
    nodes: &[JobNode],
    answers: &[Answers],
) -> JobTransports {
    let windows = |ranks: &[usize], of: fn(&Answers) -> &Vec<WindowAnswer>| {
        let of_kind = |(at, (call, _)): (usize, &(&'static str, GroupWindow))| {
            let found: Vec<&WindowAnswer> =
                ranks.iter().filter_map(|rank| of(&answers[*rank]).get(at)).collect();
            WindowReport::of(call, &found)
        };
        WINDOWS.iter().enumerate().map(of_kind).collect()
    };
    let node = |node: &JobNode| {
        let first = &facts[node.ranks[0]];
        let mut windows: Vec<WindowReport> = windows(&node.ranks, |answers| &answers.of_node);
        for window in windows.iter_mut().filter(|window| window.is_unexplained()) {
            window.why_not.extend(first.without_adoption.clone());
        }
        let (name, ranks) = (node.name.clone(), node.ranks.clone());
        NodeReport { name, ranks, windows, limits: first.limits.clone() }
    };
    let all: Vec<usize> = (0..group.ranks()).collect();
    let between: Vec<WindowReport> =
        if nodes.len() > 1 { windows(&all, |answers| &answers.of_all) } else { Vec::new() };
    let uses_rdma = between.iter().any(|window| window.transport.starts_with("RDMA"));
    JobTransports {
        why_not: None,
        ranks: group.ranks(),
        mpi: group.mpi().line.split_whitespace().collect::<Vec<_>>().join(" "),
        abi: group.mpi().abi_name(),
        mpi_library: group.mpi().library.display().to_string(),
        nodes: nodes.iter().map(node).collect(),
        without_rdma: if uses_rdma || nodes.len() < 2 { Vec::new() } else { without_rdma(facts) },
        between_nodes: between,
        ranks_max: RANKS_MAX,
    }
}

/// The ranks without RDMA, by their reasons.
fn without_rdma(facts: &[RankFacts]) -> Vec<WithoutRdma> {
    let mut found: Vec<WithoutRdma> = Vec::new();
    for (rank, why) in facts.iter().enumerate() {
        let Some(why_not) = why.without_rdma.clone() else { continue };
        match found.iter_mut().find(|same| same.why_not == why_not) {
            Some(same) => same.ranks.push(rank),
            None => found.push(WithoutRdma { ranks: vec![rank], why_not }),
        }
    }
    found
}

impl WindowReport {
    /// The report about the windows of a call, by the answers of their ranks.
    fn of(call: &'static str, answers: &[&WindowAnswer]) -> WindowReport {
        let transport = answers.first().and_then(|answer| answer.transport.clone());
        let mut report = WindowReport {
            call,
            transport: transport.unwrap_or_else(|| "host MPI".into()),
            why_not: Vec::new(),
        };
        let lines = || answers.iter().flat_map(|answer| &answer.said);
        for line in lines() {
            if let Some((_, made)) = line.split_once(", transport: ") {
                // The interface and the ABI follow the name of the transport.
                let whole = made.rsplit_once(" (").map_or(made, |(whole, _)| whole);
                report.transport = whole.to_owned();
                continue;
            }
            let reason = ["delegated to the host MPI: ", "its memory is not adopted: "]
                .iter()
                .find_map(|start| line.split_once(start).map(|(_, reason)| reason));
            let is_message = line.contains("[FOMPI-");
            let Some(reason) = reason.or_else(|| is_message.then_some(line)) else { continue };
            if !report.why_not.iter().any(|known| known == reason) {
                report.why_not.push(reason.to_owned());
            }
        }
        // Memory of malloc mostly begins inside of a page.
        let in_part = lines().any(|line| line.ends_with(" bytes adopted as shared memory"));
        if report.is_unexplained() && in_part {
            report.why_not.push("only whole pages of its memory are shared memory".into());
        }
        report
    }

    /// Whether its memory is copied, and the library has not tried to adopt it.
    fn is_unexplained(&self) -> bool {
        self.transport == "process_vm" && self.why_not.is_empty()
    }

    fn line(&self) -> String {
        let why = match self.why_not.is_empty() {
            true => String::new(),
            false => format!(" (why not another: {})", self.why_not.join("; ")),
        };
        format!("        windows of {}: {}{why}", self.call, self.transport)
    }
}

impl RankLimits {
    fn line(&self) -> String {
        let limit = |value: Option<u64>, shown: fn(u64) -> String| {
            value.map_or_else(|| "unlimited".into(), shown)
        };
        format!(
            "        limits: {} of memory for all ranks, {} open files and {} of locked memory for \
             each, {} processors",
            size(self.memory_bytes),
            limit(self.open_files, |files| files.to_string()),
            limit(self.locked_bytes, size),
            self.processors
        )
    }
}

impl JobTransports {
    /// The lines about the job.
    pub fn lines(&self) -> Vec<String> {
        if let Some(why) = &self.why_not {
            return vec![format!("this job: its ranks cannot be asked: {why}")];
        }
        let count = |count: usize, what: &str| {
            format!("{count} {what}{}", if count == 1 { "" } else { "s" })
        };
        let mut lines = vec![format!(
            "this job: {} on {}; {} ({}, {})",
            count(self.ranks, "rank"),
            count(self.nodes.len(), "node"),
            self.mpi,
            self.abi,
            self.mpi_library
        )];
        for node in &self.nodes {
            lines.push(format!("    {} on {}", named(&node.ranks), node.name));
            lines.extend(node.windows.iter().map(WindowReport::line));
            lines.push(node.limits.line());
        }
        if !self.between_nodes.is_empty() {
            lines.push("    between nodes".into());
            lines.extend(self.between_nodes.iter().map(WindowReport::line));
        }
        let without = |without: &WithoutRdma| {
            format!("        no RDMA on {}: {}", named(&without.ranks), without.why_not)
        };
        lines.extend(self.without_rdma.iter().map(without));
        lines.push(format!("    a window has {} ranks at most", self.ranks_max));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(transport: Option<&str>, said: &[&str]) -> WindowAnswer {
        let said = said.iter().map(|line| String::from(*line)).collect();
        WindowAnswer { transport: transport.map(str::to_owned), said }
    }

    #[test]
    fn a_transport_has_its_interface() {
        let line = "MPI_Win_create: 2 ranks, 9 bytes, transport: TCP between nodes by eth0, \
                    10.77.0.1 (MPICH ABI)";
        let answers =
            [answer(Some("TCP between nodes"), &[line]), answer(Some("TCP between nodes"), &[])];
        let report = WindowReport::of("MPI_Win_create", &answers.iter().collect::<Vec<_>>());
        assert_eq!(report.transport, "TCP between nodes by eth0, 10.77.0.1");
        assert_eq!(report.why_not, Vec::<String>::new());
    }

    #[test]
    fn memory_that_is_adopted_in_part_is_a_reason() {
        let made = "MPI_Win_create: 2 ranks, 8192 bytes, transport: process_vm (MPICH ABI)";
        let adopted = "MPI_Win_create: rank 0: 4096 bytes adopted as shared memory";
        let answers = [answer(Some("process_vm"), &[made, adopted])];
        let report = WindowReport::of("MPI_Win_create", &answers.iter().collect::<Vec<_>>());
        assert_eq!(report.transport, "process_vm");
        assert_eq!(report.why_not, ["only whole pages of its memory are shared memory"]);
    }

    #[test]
    fn a_reason_is_told_once_and_whole() {
        let said = |rank| {
            format!("MPI_Win_create: rank {rank}: process_vm, its memory is not adopted: x: y")
        };
        let delegated = "MPI_Win_create: delegated to the host MPI: no (a) [FOMPI-W025]";
        let cause = "rank 1: node b: cause [FOMPI-E104]";
        let (zero, one) = (said(0), said(1));
        let answers = [answer(None, &[&zero, delegated]), answer(None, &[&one, cause])];
        let report = WindowReport::of("MPI_Win_create", &answers.iter().collect::<Vec<_>>());
        assert_eq!(report.transport, "host MPI");
        assert_eq!(report.why_not, ["x: y", "no (a) [FOMPI-W025]", cause]);
    }
}
