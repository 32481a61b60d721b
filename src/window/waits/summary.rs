//! Table at the end of the job: the windows, their transports, and the time that ranks waited for
//! other ranks in calls on them. Before the last barrier of a window each rank stores its time in a
//! control word; behind it rank 0 reads them all. In MPI_Finalize it prints its rows.

use crate::config::Config;
use crate::fabric::layout::WAITED;
use crate::fabric::{WordAt, Words};
use crate::rank_numbers::Rank;
use crate::report::{inform, printable};
use crate::window::protocols::on_words;
use crate::window::{Flavor, LocalWindow, Window, registry};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The most rows that are printed.
const ROWS_MAX: usize = 20;

/// The properties that the windows of one row share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    call: &'static str,
    name: String,
    ranks: u32,
    transport: &'static str,
    /// whether MPI_Win_free was called, so that the times of all ranks are known
    freed: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    windows: u64,
    /// nanoseconds, by rank; without ranks that have not waited
    waited: BTreeMap<Rank, u64>,
}

static ROWS: Mutex<BTreeMap<Kind, Row>> = Mutex::new(BTreeMap::new());

impl Row {
    fn all(&self) -> u64 {
        self.waited.values().sum()
    }

    /// Returns the rank that has waited longest, and its nanoseconds.
    fn longest(&self) -> (Rank, u64) {
        let longest = self.waited.iter().max_by_key(|(_, ns)| **ns);
        longest.map_or((Rank::FIRST, 0), |(rank, ns)| (*rank, *ns))
    }

    fn add(&mut self, waited: impl IntoIterator<Item = (Rank, u64)>) {
        self.windows += 1;
        for (rank, ns) in waited.into_iter().filter(|(_, ns)| *ns > 0) {
            *self.waited.entry(rank).or_default() += ns;
        }
    }
}

fn kind(window: &Window, node: &LocalWindow, freed: bool) -> Kind {
    let name = printable(&window.name.lock());
    let call = Flavor::call(window.facts.flavor);
    Kind { call, name, ranks: node.size, transport: node.transport(), freed }
}

/// Stores the time of this process for rank 0. Call before the last barrier of a window.
pub fn leave(node: &LocalWindow) {
    if let Some(total) = node.words.idle().total() {
        on_words!(node, |words| words.set_own(WAITED, total.ns()));
    }
}

/// Keeps the row of a window with several ranks, in its rank 0. Call behind the last barrier of the
/// window and before its control words serve another one.
pub fn freed(window: &Window, node: &LocalWindow) {
    if node.words.idle().total().is_none() || node.rank != Rank::FIRST || node.size == 1 {
        return;
    }
    let waited = |rank: Rank| {
        let at = WordAt { rank, word: WAITED };
        (rank, on_words!(node, |words| words.read(at)).unwrap_or(0))
    };
    let row = kind(window, node, true);
    // Where ranks of other nodes do not report, they do not wait for this rank to read their times.
    let is_known =
        |rank: &Rank| *rank == node.rank || !node.spans_nodes() || node.report_waits_of_nodes();
    let ranks = Rank::all(node.size).filter(is_known);
    ROWS.lock().entry(row).or_default().add(ranks.map(waited));
}

/// Prints the rows of this process, with the windows that it has not freed. Call in MPI_Finalize.
pub fn print() {
    let mut rows = core::mem::take(&mut *ROWS.lock());
    registry::for_each(|window| {
        let Some(node) = window.local().filter(|node| node.rank == Rank::FIRST && node.size > 1)
        else {
            return;
        };
        if let Some(total) = node.words.idle().total() {
            rows.entry(kind(window, node, false)).or_default().add([(Rank::FIRST, total.ns())]);
        }
    });
    text(rows).inspect(|text| inform(Config::get(), text));
}

fn text(rows: BTreeMap<Kind, Row>) -> Option<String> {
    let mut rows: Vec<(Kind, Row)> = rows.into_iter().collect();
    rows.sort_by_key(|(_, row)| core::cmp::Reverse(row.all()));
    let more = rows.len().saturating_sub(ROWS_MAX);
    let line = |(kind, row): &(Kind, Row)| {
        let (rank, longest) = row.longest();
        let longest = if longest > 0 {
            format!("{} by rank {rank}", seconds(longest))
        } else {
            String::from("-")
        };
        let name = if kind.name.is_empty() { String::new() } else { format!(" \"{}\"", kind.name) };
        let note = if kind.freed { "" } else { ", not freed: rank 0 alone" };
        format!(
            "fompi: {:>7}  {:>5}  {:<19}  {:>12}  {:<24}  {}{name}{note}",
            row.windows,
            kind.ranks,
            kind.transport,
            seconds(row.all()),
            longest,
            kind.call
        )
    };
    let lines: Vec<String> = rows.iter().take(ROWS_MAX).map(line).collect();
    let more = if more > 0 { format!("\nfompi: and {more} more rows") } else { String::new() };
    (!lines.is_empty()).then(|| {
        let heading = format!(
            "fompi: {:>7}  {:>5}  {:<19}  {:>12}  {:<24}  made by",
            "windows", "ranks", "transport", "in all ranks", "longest"
        );
        let lines = lines.join("\n");
        format!("how long ranks waited for others in calls on windows\n{heading}\n{lines}{more}")
    })
}

fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn kind(name: &str, freed: bool) -> Kind {
        let name = String::from(name);
        Kind { call: "MPI_Win_allocate", name, ranks: 4, transport: "shared memory", freed }
    }

    #[test]
    fn equal_windows_share_a_row_and_the_longest_wait_comes_first() {
        assert_eq!(text(BTreeMap::new()), None);
        let mut rows: BTreeMap<Kind, Row> = BTreeMap::new();
        rows.entry(kind("", true)).or_default().add([(Rank(0), 0), (Rank(1), 0)]);
        let table = rows.entry(kind("a", true)).or_default();
        table.add([(Rank(0), 1_000_000), (Rank(3), 2_000_000_000)]);
        table.add([(Rank(0), 4_000_000_000), (Rank(3), 2_500_000_000)]);
        rows.entry(kind("b", false)).or_default().add([(Rank(0), 9_000_000)]);
        let text = text(rows).unwrap();
        let lines: Vec<String> = text
            .lines()
            .skip(2)
            .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "fompi: 2 4 shared memory 8.501 s 4.500 s by rank 3 MPI_Win_allocate \"a\"",
                "fompi: 1 4 shared memory 0.009 s 0.009 s by rank 0 MPI_Win_allocate \"b\", not \
                 freed: rank 0 alone",
                "fompi: 1 4 shared memory 0.000 s - MPI_Win_allocate",
            ]
        );
    }

    #[test]
    fn a_job_with_many_windows_prints_some() {
        let rows = (0..30).map(|number| (kind(&number.to_string(), true), Row::default()));
        let text = text(rows.collect()).unwrap();
        assert_eq!(text.lines().count(), 2 + ROWS_MAX + 1);
        assert!(text.ends_with("and 10 more rows"));
    }
}
