//! The job that this process is a rank of, if a launcher has started it: the ranks of its MPI, and
//! the nodes that they are on.

use crate::selftest::mpi_libraries;
use fompi_base::config;
use fompi_selftest::job_group::JobGroup;
use serde::{Deserialize, Serialize};
use std::env;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The time in which the host MPI connects the ranks.
const MPI_STARTS: Duration = Duration::from_secs(60);

/// Whether a launcher has started this process as a rank. The script of a batch job of Slurm has a
/// rank, too, but no step.
pub fn is_rank() -> bool {
    let variable = config::rank().and_then(config::rank_variable);
    variable.is_some_and(|name| name != "SLURM_PROCID" || env::var_os("SLURM_STEP_ID").is_some())
}

/// Joins the other ranks by an MPI library, or by that of the launcher. If the MPI does not connect
/// them in time, calls `on_timeout` with the reason, and ends this process. Collective.
pub fn join(
    fompi: Option<&Path>,
    mpi: Option<&Path>,
    on_timeout: impl FnOnce(String) + Send,
) -> Result<JobGroup, String> {
    let libraries = mpi.map_or_else(mpi_libraries::candidates, |path| vec![path.to_owned()]);
    within(MPI_STARTS, on_timeout, || {
        let group = JobGroup::join(fompi, &libraries)?;
        // The first exchange makes the connections.
        group.gather("")?;
        Ok(group)
    })
}

/// Calls a function. If it does not return in time, calls `on_timeout`, and ends this process.
fn within<T>(
    limit: Duration,
    on_timeout: impl FnOnce(String) + Send,
    call: impl FnOnce() -> T,
) -> T {
    thread::scope(|scope| {
        let (returned, waits) = mpsc::channel::<()>();
        scope.spawn(move || {
            if waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                on_timeout(format!("the MPI has not connected the ranks in {} s", limit.as_secs()));
                std::process::exit(1);
            }
        });
        let result = call();
        drop(returned);
        result
    })
}

/// Returns what all ranks tell. Collective.
pub fn exchange<T: Serialize + for<'a> Deserialize<'a>>(
    group: &JobGroup,
    own: &T,
) -> Result<Vec<T>, String> {
    let own = serde_json::to_string(own).map_err(|error| error.to_string())?;
    let parsed = |text: &String| serde_json::from_str(text).map_err(|error| error.to_string());
    group.gather(&own)?.iter().map(parsed).collect()
}

/// The place of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankPlace {
    /// the name of its node
    pub node: String,
    /// what the ranks of a node have in common, as the library compares it
    machine: u64,
    /// the node that FOMPI_RANKS_PER_NODE simulates
    simulated: u64,
}

impl RankPlace {
    /// The place of this process, which is a rank of this number.
    pub fn own(rank: usize) -> RankPlace {
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let [machine, simulated] = fompi_selftest::node_of(rank);
        RankPlace { node, machine, simulated }
    }
}

/// A node, and its ranks.
#[derive(Debug, PartialEq, Eq)]
pub struct JobNode {
    /// its name
    pub name: String,
    /// its ranks, in their order
    pub ranks: Vec<usize>,
}

/// Returns the nodes of ranks, in the order of their first ranks.
pub fn nodes_of(places: &[RankPlace]) -> Vec<JobNode> {
    let mut nodes: Vec<JobNode> = Vec::new();
    for (rank, place) in places.iter().enumerate() {
        let is_same = |node: &&mut JobNode| {
            let first = &places[node.ranks[0]];
            (first.machine, first.simulated) == (place.machine, place.simulated)
        };
        match nodes.iter_mut().find(is_same) {
            Some(node) => node.ranks.push(rank),
            None => nodes.push(JobNode { name: place.node.clone(), ranks: vec![rank] }),
        }
    }
    nodes
}

/// Names ranks: `rank 3`, `ranks 0-3`, `ranks 0-1, 4`.
pub fn named(ranks: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *rank => *last = *rank,
            _ => runs.push((*rank, *rank)),
        }
    }
    let text = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let texts: Vec<String> = runs.iter().map(text).collect();
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_named_in_runs() {
        assert_eq!(named(&[3]), "rank 3");
        assert_eq!(named(&[0, 1, 2, 3]), "ranks 0-3");
        assert_eq!(named(&[0, 1, 4, 6, 7]), "ranks 0-1, 4, 6-7");
    }

    #[test]
    fn nodes_have_the_ranks_of_one_machine() {
        let place =
            |node: &str, machine, simulated| RankPlace { node: node.into(), machine, simulated };
        let places = [place("a", 1, 0), place("b", 2, 0), place("a", 1, 0), place("a", 1, 1)];
        let found: Vec<_> =
            nodes_of(&places).into_iter().map(|node| (node.name, node.ranks)).collect();
        let expected = [("a", vec![0, 2]), ("b", vec![1]), ("a", vec![3])];
        assert_eq!(found, expected.map(|(name, ranks)| (String::from(name), ranks)));
    }
}
