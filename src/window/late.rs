//! What a rank says when others have not come to a call that all ranks must make. It waits for them
//! all the same: they may be late for a good reason. One rank of each node says it, the lowest that
//! waits there.
//!
//! At the first window of a communicator nothing is known of the others, and one that has no
//! libfompi never comes. So this is said in every job, and what /proc shows of the others with it.
//! Later all have been here before, so only who asked for it by FOMPI_VERBOSE is told.

use super::arena::Arena;
use super::report::say;
use crate::config::{self, Config};
use crate::epoch::fence;
use crate::mpi::Host;
use crate::mpi::comm::{Comm, Group};
use crate::sys::job::{self, Mark};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a rank waits until it says so.
fn patience() -> Duration {
    Duration::from_secs(if Config::get().reports_waits { 5 } else { 20 })
}

/// A rank that has waited so long lets others see it.
const SHOWN: Duration = Duration::from_millis(100);
/// So many processes are named.
const NAMED_MAX: usize = 6;
/// What to do.
const REMEDY: &str = "start all ranks with the library, as fompirun does";

/// Waiting in the first collective call of a communicator, which is not over yet.
pub struct Late<'a> {
    host: &'a Host,
    comm: Comm,
    call: &'static str,
    rounds: u32,
    began: Option<Instant>,
    shown: Option<Option<Shown>>,
    told: bool,
}

/// What a rank must know to find others.
struct Shown {
    /// the ranks in MPI_COMM_WORLD of those that it waits for
    worlds: Vec<u32>,
    /// where the launcher tells them
    variable: &'static str,
    mark: Mark,
}

/// A rank of the own node, by its rank in the communicator.
struct Other {
    rank: u32,
    pid: i32,
    has_library: bool,
    waits: bool,
}

/// Rounds before the first yield: a few microseconds.
const AWAKE_ROUNDS: u32 = 20;
/// So long the core is given away but kept in sight; then come sleeps, of these lengths.
const YIELDS: Duration = Duration::from_millis(1);
const SLEEP: core::ops::RangeInclusive<Duration> =
    Duration::from_micros(50)..=Duration::from_millis(1);

impl<'a> Late<'a> {
    /// Of ranks of `comm`, in the user's call `call`.
    pub fn new(host: &'a Host, comm: Comm, call: &'static str) -> Late<'a> {
        Late { host, comm, call, rounds: 0, began: None, shown: None, told: false }
    }

    /// Between two looks whether the others have come.
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
        if waited >= SHOWN {
            let (host, comm) = (self.host, self.comm);
            let shown = self.shown.get_or_insert_with(|| Shown::of(host, comm));
            if waited >= patience() && !self.told {
                self.told = true;
                if let Ok(rank) = comm.rank(host) {
                    let others = shown.as_ref().map(Shown::others);
                    let size = comm.size(host).unwrap_or(0);
                    text(self.call, rank, size, others.as_deref()).inspect(|text| say(text));
                }
            }
        }
    }
}

impl Late<'_> {
    /// Says which ranks of this node have no libfompi, if one has none. For when they answer, but
    /// not as libfompi does.
    pub fn name_ranks_without_library(&mut self) {
        let (host, comm) = (self.host, self.comm);
        let shown = self.shown.get_or_insert_with(|| Shown::of(host, comm));
        if let (Some(shown), Ok(rank)) = (shown, comm.rank(host)) {
            without(rank, &shown.others()).inspect(|text| say(text));
        }
    }
}

impl Shown {
    /// `None`: the others cannot be found.
    fn of(host: &Host, comm: Comm) -> Option<Shown> {
        if !host.initialized() {
            return None;
        }
        let world = Comm(host.constants.comm_world);
        let variable = config::rank_variable(world.rank(host).ok()?)?;
        let groups = [comm.group(host).ok()?, world.group(host).ok()?];
        let worlds = groups[0].ranks_in(host, groups[1]).ok();
        groups.iter().for_each(|group: &Group| group.free(host));
        let worlds = worlds?;
        let add = |hash: u64, rank: &u32| (hash ^ u64::from(*rank)).wrapping_mul(0x100_0000_01b3);
        let mark = Mark::show(worlds.iter().fold(0xcbf2_9ce4_8422_2325, add)).ok()?;
        Some(Shown { worlds, variable, mark })
    }

    fn others(&self) -> Vec<Other> {
        let rank_of = |world| self.worlds.iter().position(|here| *here == world);
        let other = |found: job::Found| {
            let job::Found { rank, pid, has_library, waits } = found;
            Some(Other { rank: rank_of(rank)? as u32, pid, has_library, waits })
        };
        job::others(self.variable, &self.mark).into_iter().filter_map(other).collect()
    }
}

/// What rank `rank` says of the other ranks of its node, if that is known of `others`. `None`:
/// another one says it.
fn text(call: &str, rank: u32, size: u32, others: Option<&[Other]>) -> Option<String> {
    let waits = waits(call, rank);
    let Some(others) = others else {
        return Some(format!(
            "{waits} for other ranks: is libfompi loaded in all of them? If not, {REMEDY}"
        ));
    };
    if others.iter().any(|other| other.waits && other.rank < rank) {
        return None;
    }
    let absent = |has_library| {
        let is_it = |other: &&Other| !other.waits && other.has_library == has_library;
        let absent = others.iter().filter(is_it).map(|other| (other.rank, Some(other.pid)));
        named(absent.collect())
    };
    let text = match (absent(false), absent(true)) {
        (Some(without), None) => {
            format!(": libfompi is not loaded in {without}; {REMEDY}")
        }
        (Some(without), Some(with)) => {
            format!(" for {with}, and libfompi is not loaded in {without}; {REMEDY}")
        }
        (None, Some(with)) => format!(" for {with}, where libfompi is loaded"),
        (None, None) if others.len() + 1 < size as usize => {
            let here = others.len() + 1;
            let here = match here {
                1 => String::from("the only rank of its node"),
                here => format!("as have all {here} ranks of its node"),
            };
            format!(", {here}: is libfompi loaded on all other nodes? If not, {REMEDY}")
        }
        (None, None) => {
            String::from(", as all other ranks, which wait there for other communicators")
        }
    };
    Some(waits + &text)
}

/// What rank `rank` says of those of its node that have no libfompi, if it is the lowest that has.
fn without(rank: u32, others: &[Other]) -> Option<String> {
    if others.iter().any(|other| other.has_library && other.rank < rank) {
        return None;
    }
    let without = others.iter().filter(|other| !other.has_library);
    let names = named(without.map(|other| (other.rank, Some(other.pid))).collect())?;
    Some(format!("libfompi is not loaded in {names}; {REMEDY}"))
}

fn waits(call: &str, rank: u32) -> String {
    format!("rank {rank} has waited {} s in {call}", patience().as_secs())
}

/// Ranks with their processes, if these are known; `None` if there are none.
pub fn named(processes: Vec<(u32, Option<i32>)>) -> Option<String> {
    let one = |(rank, pid): &(u32, Option<i32>)| match pid {
        Some(pid) => format!("rank {rank} (process {pid})"),
        None => format!("rank {rank}"),
    };
    let names: Vec<String> = processes.iter().take(NAMED_MAX).map(one).collect();
    let more = processes.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| names.join(", ") + &more)
}

/// Waiting in a barrier of an arena, for a call that makes or frees a window.
#[derive(Default)]
pub struct Meeting {
    began: Option<Instant>,
    told: bool,
}

impl Meeting {
    /// Once in a while. `slot`: whose barrier it is.
    pub fn look(&mut self, arena: &Arc<Arena>, slot: u32, call: &'static str) {
        let waited = self.began.get_or_insert_with(Instant::now).elapsed();
        if self.told || waited < patience() || !Config::get().verbose {
            return;
        }
        self.told = true;
        let absent = fence::absent(&arena.words(slot), 1);
        let is_here = |rank: &u32| !absent.contains(rank);
        if (0..arena.size).find(is_here) == Some(arena.rank) {
            let process =
                |rank: &u32| (arena.name_of(*rank), Some(arena.memory_of(*rank).life.mark().pid));
            if let Some(names) = named(absent.iter().map(process).collect()) {
                say(&format!("{} for {names}", waits(call, arena.name_of(arena.rank))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(rank: u32, has_library: bool, waits: bool) -> Other {
        Other { rank, pid: 100 + rank as i32, has_library, waits }
    }

    fn said(others: &[Other]) -> String {
        text("MPI_Win_create", 1, 9, Some(others)).unwrap_or_default()
    }

    #[test]
    fn a_rank_without_the_library_is_named() {
        let text = said(&[other(0, false, false), other(2, true, true)]);
        let expected = "rank 1 has waited 20 s in MPI_Win_create: libfompi is not loaded in rank 0 \
                        (process 100); start all ranks with the library, as fompirun does";
        assert_eq!(text, expected);
        let text = said(&[other(0, false, false), other(2, true, false)]);
        assert!(text.contains(" for rank 2 (process 102), and libfompi is not loaded in rank 0"));
    }

    #[test]
    fn a_rank_that_is_late_is_named() {
        let text = said(&[other(0, true, false), other(2, true, true)]);
        assert!(text.ends_with("for rank 0 (process 100), where libfompi is loaded"), "{text}");
    }

    #[test]
    fn where_all_of_the_node_have_come_it_asks_for_the_others() {
        let text = said(&[other(2, true, true)]);
        assert!(text.contains("as have all 2 ranks of its node: is libfompi loaded on all other"));
        assert!(said(&[]).contains(", the only rank of its node: is libfompi loaded on all other"));
        let text = super::text("MPI_Win_create", 0, 2, None).unwrap();
        assert!(text.contains("for other ranks: is libfompi loaded in all of them?"));
    }

    #[test]
    fn the_lowest_rank_that_waits_says_it() {
        assert_eq!(said(&[other(0, true, true), other(2, false, false)]), "");
        assert_ne!(said(&[other(0, true, false), other(2, true, true)]), "");
    }

    #[test]
    fn ranks_without_the_library_are_named_where_they_answer() {
        let others = [other(0, false, false), other(2, true, false), other(3, false, false)];
        let expected =
            "libfompi is not loaded in rank 0 (process 100), rank 3 (process 103); start";
        assert!(without(1, &others).is_some_and(|text| text.starts_with(expected)));
        assert_eq!(without(4, &others), None);
        assert_eq!(without(1, &others[1..2]), None);
    }

    #[test]
    fn not_more_than_a_line_of_ranks_is_named() {
        let all: Vec<Other> = (2..64).map(|rank| other(rank, false, false)).collect();
        let text = said(&all);
        assert!(text.contains("rank 7 (process 107) and 56 more;"), "{text}");
    }
}
