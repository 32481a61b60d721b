//! Reports on ranks that a collective call waits for. The waiting rank continues to wait, because
//! the other ranks may have a good reason. The lowest waiting rank of each node prints the report.
//!
//! At the first window of a communicator a rank knows nothing about the other ranks, and a rank
//! without libfompi never makes the call. So this report is printed in every job, with the
//! information that /proc has about the other ranks. In later calls on the communicator all ranks
//! are known to have libfompi, and the report is printed only if FOMPI_VERBOSE is set.

use super::named;
use crate::config::{self, Config};
use crate::messages::{self, Line, filled};
use crate::mpi::Host;
use crate::mpi::comm::{Comm, Group};
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::sys::job::{self, WaitMark};
use std::time::{Duration, Instant};

/// Returns how long a rank waits before it prints a report.
pub fn patience() -> Duration {
    Duration::from_secs(if Config::get().reports_waits { 5 } else { 20 })
}

/// How long a rank waits before it shows a mark that others of its node can see.
const MARK_AFTER: Duration = Duration::from_millis(100);
/// How long a rank waits once all ranks have arrived before it reports that they wait for other
/// communicators: on a busy machine a collective call takes some time after the last arrival.
const ARRIVAL: Duration = Duration::from_secs(2);

/// A wait in the first collective call of a communicator.
pub struct FirstCallWait<'a> {
    host: &'a Host,
    comm: Comm,
    call: &'static str,
    rounds: u32,
    began: Option<Instant>,
    /// `None`: not made yet
    finder: Option<Search>,
    /// the wait after which it prints the report; `None`: no more report
    due: Option<Duration>,
}

/// The method by which the other ranks of a communicator are found.
enum Search {
    /// by the environment of the processes of the node
    ByEnvironment(Finder),
    /// not at all: some were started by MPI_Comm_spawn, or are connected to this job
    OtherJobs,
    /// not at all, for another reason
    Impossible,
}

/// The data by which a rank finds the other ranks of its node.
struct Finder {
    /// the ranks of the communicator, as ranks in MPI_COMM_WORLD
    worlds: Vec<u32>,
    /// the environment variable by which the launcher tells a process its rank
    variable: &'static str,
    /// shows the other ranks that this rank is waiting
    mark: WaitMark,
}

/// Another rank of this node.
struct Other {
    /// its rank in the communicator
    rank: Rank,
    pid: i32,
    has_library: bool,
    /// whether it shows the same mark: it waits for the same ranks
    waits: bool,
}

/// Rounds before the first yield: a few microseconds.
const AWAKE_ROUNDS: u32 = 20;
/// How long a waiting rank yields its core between two polls. Then it sleeps, for these times.
const YIELDS: Duration = Duration::from_millis(1);
const SLEEP: core::ops::RangeInclusive<Duration> =
    Duration::from_micros(50)..=Duration::from_millis(1);

impl<'a> FirstCallWait<'a> {
    /// Begins a wait for the ranks of `comm`, in the user's call `call`.
    pub fn new(host: &'a Host, comm: Comm, call: &'static str) -> FirstCallWait<'a> {
        FirstCallWait {
            host,
            comm,
            call,
            rounds: 0,
            began: None,
            finder: None,
            due: Some(patience()),
        }
    }

    /// Pauses between two polls of the collective call, and prints the report when it is time.
    pub fn pause(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= AWAKE_ROUNDS {
            return;
        }
        let waited = self.began.get_or_insert_with(Instant::now).elapsed();
        if waited < YIELDS {
            return std::thread::yield_now();
        }
        std::thread::sleep((waited / 16).clamp(*SLEEP.start(), *SLEEP.end()));
        if waited >= MARK_AFTER {
            let (host, comm) = (self.host, self.comm);
            let search = self.finder.get_or_insert_with(|| Search::new(host, comm));
            if self.due.is_some_and(|due| waited >= due) {
                self.due = None;
                if let Ok(rank) = comm.rank(host).map(Rank) {
                    let size = comm.size(host).unwrap_or(0);
                    let text = match search {
                        Search::ByEnvironment(finder) => {
                            let others = finder.others();
                            if are_all_here(&others, size) && waited < patience() + ARRIVAL {
                                self.due = Some(patience() + ARRIVAL);
                                return;
                            }
                            text(self.call, rank, size, &others)
                        }
                        Search::OtherJobs => Some(text_of_other_jobs(self.call, rank)),
                        Search::Impossible => Some(text_of_unknown(self.call, rank)),
                    };
                    text.inspect(Line::print);
                }
            }
        }
    }
}

impl FirstCallWait<'_> {
    /// Prints which ranks of this node have no libfompi, if there are any. For a collective call
    /// that has completed with data that are not libfompi's.
    pub fn name_ranks_without_library(&mut self) {
        let (host, comm) = (self.host, self.comm);
        let search = self.finder.get_or_insert_with(|| Search::new(host, comm));
        if let (Search::ByEnvironment(finder), Ok(rank)) = (search, comm.rank(host).map(Rank)) {
            text_without(rank, &finder.others()).inspect(Line::print);
        }
    }
}

impl Search {
    /// Determines how the other ranks of `comm` are found. If by the environment, shows a mark that
    /// this rank waits in a call on `comm`.
    fn new(host: &Host, comm: Comm) -> Search {
        if !host.initialized() {
            return Search::Impossible;
        }
        let world = Comm(host.constants.comm_world);
        let groups = (comm.group(host), world.group(host));
        let (Ok(own), Ok(all)) = groups else { return Search::Impossible };
        let worlds =
            own.with_ranks_in(host, all, |ranks| Ok(ranks.iter().map(|rank| rank.0).collect()));
        [own, all].iter().for_each(|group: &Group| group.free(host));
        let Ok(worlds) = worlds else { return Search::OtherJobs };
        Finder::new(host, worlds).map_or(Search::Impossible, Search::ByEnvironment)
    }
}

impl Finder {
    /// Creates it for these ranks of MPI_COMM_WORLD. `None`: the launcher sets no variable that is
    /// known.
    fn new(host: &Host, worlds: Vec<u32>) -> Option<Finder> {
        let variable = config::rank_variable(Comm(host.constants.comm_world).rank(host).ok()?)?;
        let add = |hash: u64, world: &u32| (hash ^ u64::from(*world)).wrapping_mul(0x100_0000_01b3);
        let mark = WaitMark::show(worlds.iter().fold(0xcbf2_9ce4_8422_2325, add)).ok()?;
        Some(Finder { worlds, variable, mark })
    }

    /// Returns the other ranks of the communicator that are found on this node.
    fn others(&self) -> Vec<Other> {
        let rank_of = |world| self.worlds.iter().position(|here| *here == world);
        let other = |found: job::FoundRank| {
            let job::FoundRank { world_rank, pid, has_library, waits } = found;
            Some(Other { rank: Rank(rank_of(world_rank)?.to_u32()), pid, has_library, waits })
        };
        job::others(self.variable, &self.mark).into_iter().filter_map(other).collect()
    }
}

/// Whether all ranks of a communicator are on this node, and wait for the same ranks.
fn are_all_here(others: &[Other], size: u32) -> bool {
    others.len() + 1 == size.to_usize() && others.iter().all(|other| other.waits)
}

/// Returns the report of rank `rank` of a communicator with ranks of other jobs.
fn text_of_other_jobs(call: &str, rank: Rank) -> Line {
    filled!(messages::OTHER_JOBS; rank, seconds = patience().as_secs(), call).line()
}

/// Returns the report of rank `rank`, which cannot find the others.
fn text_of_unknown(call: &str, rank: Rank) -> Line {
    filled!(messages::UNKNOWN_RANKS; rank, seconds = patience().as_secs(), call).line()
}

/// Returns the report of rank `rank`. `others`: the other ranks of its node. `None`: a lower rank
/// of the node prints the report.
fn text(call: &str, rank: Rank, size: u32, others: &[Other]) -> Option<Line> {
    let seconds = patience().as_secs();
    if others.iter().any(|other| other.waits && other.rank < rank) {
        return None;
    }
    let absent = |has_library| {
        let is_it = |other: &&Other| !other.waits && other.has_library == has_library;
        let absent = others.iter().filter(is_it).map(|other| (other.rank, Some(other.pid)));
        named(absent.collect())
    };
    Some(match (absent(false), absent(true)) {
        (Some(without), None) => filled!(messages::NOT_LOADED; rank, seconds, call, without).line(),
        (Some(without), Some(with)) => {
            filled!(messages::NOT_LOADED_AND_LATE; rank, seconds, call, without, with).line()
        }
        (None, Some(with)) => filled!(messages::LATE; rank, seconds, call, with).line(),
        (None, None) if others.len() + 1 < size.to_usize() => {
            let here = match others.len() + 1 {
                1 => String::from("the only rank of its node"),
                here => format!("as have all {here} ranks of its node"),
            };
            filled!(messages::NOT_ON_ALL_NODES; rank, seconds, call, here).line()
        }
        (None, None) => filled!(messages::ALL_WAIT; rank, seconds, call).line(),
    })
}

/// Returns the report of rank `rank` on ranks of its node without libfompi. `None`: there are none,
/// or a lower rank with libfompi prints it.
fn text_without(rank: Rank, others: &[Other]) -> Option<Line> {
    if others.iter().any(|other| other.has_library && other.rank < rank) {
        return None;
    }
    let without = others.iter().filter(|other| !other.has_library);
    let without = named(without.map(|other| (other.rank, Some(other.pid))).collect())?;
    Some(filled!(messages::WITHOUT_LIBRARY; without).line())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(rank: Rank, has_library: bool, waits: bool) -> Other {
        Other { rank, pid: 100 + rank.0 as i32, has_library, waits }
    }

    /// Returns the report of rank 1 of 9.
    fn report(others: &[Other]) -> String {
        text("MPI_Win_create", Rank(1), 9, others).map_or_else(String::new, |line| line.to_string())
    }

    #[test]
    fn a_rank_without_the_library_is_named() {
        let text = report(&[other(Rank(0), false, false), other(Rank(2), true, true)]);
        let expected = "rank 1 has waited 20 s in MPI_Win_create: libfompi is not loaded in rank 0 \
                        (process 100); start all ranks with the library, as fompirun does \
                        [FOMPI-W009]";
        assert_eq!(text, expected);
        let text = report(&[other(Rank(0), false, false), other(Rank(2), true, false)]);
        assert!(text.contains(" for rank 2 (process 102), and libfompi is not loaded in rank 0"));
    }

    #[test]
    fn a_rank_that_is_late_is_named() {
        let text = report(&[other(Rank(0), true, false), other(Rank(2), true, true)]);
        let end = "for rank 0 (process 100): libfompi is loaded there, but MPI_Win_create was not \
                   called yet on this communicator [FOMPI-W011]";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn ranks_that_have_just_arrived_are_all_here() {
        let others = [other(Rank(0), true, true), other(Rank(2), true, true)];
        assert!(are_all_here(&others, 3) && !are_all_here(&others, 4));
        let late = [other(Rank(0), true, true), other(Rank(2), true, false)];
        assert!(!are_all_here(&late, 3));
    }

    #[test]
    fn where_all_ranks_of_the_node_wait_the_report_asks_for_other_nodes() {
        let text = report(&[other(Rank(2), true, true)]);
        assert!(text.contains("as have all 2 ranks of its node: is libfompi loaded on all other"));
        assert!(
            report(&[]).contains(", the only rank of its node: is libfompi loaded on all other")
        );
    }

    #[test]
    fn a_report_on_ranks_that_are_not_found_says_that_they_may_be_late() {
        let text = text_of_other_jobs("MPI_Win_create", Rank(0)).to_string();
        assert!(text.contains("started by MPI_Comm_spawn or are connected to this job: they may"));
        let text = text_of_unknown("MPI_Win_create", Rank(0)).to_string();
        let reason = "they may not have made this call yet, or run without libfompi; then start";
        assert!(text.contains(reason), "{text}");
    }

    #[test]
    fn the_lowest_waiting_rank_reports() {
        assert_eq!(report(&[other(Rank(0), true, true), other(Rank(2), false, false)]), "");
        assert_ne!(report(&[other(Rank(0), true, false), other(Rank(2), true, true)]), "");
    }

    #[test]
    fn ranks_without_the_library_are_named_after_a_wrong_answer() {
        let others = [
            other(Rank(0), false, false),
            other(Rank(2), true, false),
            other(Rank(3), false, false),
        ];
        let expected =
            "libfompi is not loaded in rank 0 (process 100), rank 3 (process 103); start";
        let text = text_without(Rank(1), &others).unwrap().to_string();
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(text_without(Rank(4), &others), None);
        assert_eq!(text_without(Rank(1), &others[1..2]), None);
    }

    #[test]
    fn a_report_names_few_ranks() {
        let all: Vec<Other> = (2..64).map(|rank| other(Rank(rank), false, false)).collect();
        let text = report(&all);
        assert!(text.contains("rank 7 (process 107) and 56 more;"), "{text}");
    }
}
