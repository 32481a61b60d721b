//! Which pages are adopted: runs of pages with the lease that they lie in and the number of windows
//! over them. Pure bookkeeping: it touches no memory. Invariants: runs do not overlap; the pages of
//! one lease lie in it in the order of their addresses.

use crate::number::Number;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run of pages in one lease.
struct Run<L> {
    end: u64,
    /// windows over it; 0: it could not be moved back
    windows: u32,
    lease: Arc<L>,
    /// the address at which the lease would begin
    origin: u64,
}

/// Pages of one kind: a range of addresses that is private, or that lies in one lease.
#[derive(Debug)]
pub struct Stretch<L> {
    /// its first address
    pub first: u64,
    /// one past its last address
    pub end: u64,
    /// the lease, and the address at which it would begin; `None`: private
    pub lease: Option<(Arc<L>, u64)>,
}

/// The runs of a process, by their first addresses.
pub struct PageRuns<L>(BTreeMap<u64, Run<L>>);

impl<L> PageRuns<L> {
    /// Starts without adopted pages.
    pub const NONE: PageRuns<L> = PageRuns(BTreeMap::new());

    /// Whether no page is adopted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of runs.
    pub fn count(&self) -> u64 {
        self.0.len().to_u64()
    }

    /// Whether there are pages without a window.
    pub fn has_unheld(&self) -> bool {
        self.0.values().any(|run| run.windows == 0)
    }

    /// Whether one window alone is over some of these adopted pages.
    pub fn has_last(&self, first: u64, end: u64) -> bool {
        let before = self.0.range(..first).next_back().filter(|(_, run)| run.end > first);
        before.into_iter().chain(self.0.range(first..end)).any(|(_, run)| run.windows == 1)
    }

    /// Cuts the run that holds an address in two, so that one begins there.
    fn cut(&mut self, at: u64) {
        let Some((_, run)) = self.0.range_mut(..at).next_back() else { return };
        if at < run.end {
            let behind = Run { lease: run.lease.clone(), ..*run };
            run.end = at;
            self.0.insert(at, behind);
        }
    }

    /// Returns the stretches of a range, in the order of their addresses.
    pub fn stretches(&self, first: u64, end: u64) -> Vec<Stretch<L>> {
        let before = self.0.range(..first).next_back().filter(|(_, run)| run.end > first);
        let mut found: Vec<Stretch<L>> = Vec::new();
        let mut at = first;
        let mut add = |first: u64, end: u64, lease: Option<(&Arc<L>, u64)>| {
            let joins = found.last().and_then(|last| last.lease.as_ref()).zip(lease);
            if joins.is_some_and(|(one, other)| Arc::ptr_eq(&one.0, other.0))
                && let Some(last) = found.last_mut()
            {
                last.end = end;
            } else if first < end {
                let lease = lease.map(|(lease, origin)| (lease.clone(), origin));
                found.push(Stretch { first, end, lease });
            }
        };
        for (start, run) in before.into_iter().chain(self.0.range(first..end)) {
            let start = (*start).max(first);
            add(at, start, None);
            at = run.end.min(end);
            add(start, at, Some((&run.lease, run.origin)));
        }
        add(at, end, None);
        found
    }

    /// Adds pages that were private, under one window. `lease`: its first page is that at `origin`.
    pub fn add(&mut self, first: u64, end: u64, lease: Arc<L>, origin: u64, windows: u32) {
        self.0.insert(first, Run { end, windows, lease, origin });
    }

    /// Counts one window more over adopted pages.
    pub fn hold(&mut self, first: u64, end: u64) {
        self.cut(first);
        self.cut(end);
        self.0.range_mut(first..end).for_each(|(_, run)| run.windows += 1);
    }

    /// Counts one window less over adopted pages.
    pub fn release(&mut self, first: u64, end: u64) {
        self.cut(first);
        self.cut(end);
        let held = self.0.range_mut(first..end).filter(|(_, run)| run.windows > 0);
        held.for_each(|(_, run)| run.windows -= 1);
    }

    /// Returns the pages without a window, which have to be private again.
    pub fn unheld(&self) -> Vec<Stretch<L>> {
        self.those(|run| run.windows == 0)
    }

    /// Returns all adopted pages.
    pub fn all(&self) -> Vec<Stretch<L>> {
        self.those(|_| true)
    }

    fn those(&self, which: impl Fn(&Run<L>) -> bool) -> Vec<Stretch<L>> {
        let runs = self.0.iter().filter(|(_, run)| which(run));
        let stretch = |(first, run): (&u64, &Run<L>)| Stretch {
            first: *first,
            end: run.end,
            lease: Some((run.lease.clone(), run.origin)),
        };
        runs.map(stretch).collect()
    }

    /// Removes pages, which are private now.
    pub fn remove(&mut self, first: u64, end: u64) {
        self.cut(first);
        self.cut(end);
        self.0.retain(|start, _| !(first..end).contains(start));
    }

    /// Forgets all of it, and gives nothing back. For a child of fork(2).
    pub fn forget(&mut self) {
        std::mem::forget(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fompi_testkit::Random;

    const PAGES: u64 = 24;

    /// The same as a table: lease and windows of each page.
    type Model = Vec<Option<(u64, u32)>>;

    fn compare(runs: &PageRuns<u64>, model: &Model) {
        let mut found: Model = vec![None; PAGES as usize];
        runs.0.iter().for_each(|(first, run)| {
            for page in *first..run.end {
                assert_eq!(found[page as usize], None, "runs overlap");
                found[page as usize] = Some((*run.lease, run.windows));
            }
        });
        assert_eq!(&found, model);
        let stretches = runs.stretches(0, PAGES);
        assert_eq!(stretches.iter().map(|one| one.end - one.first).sum::<u64>(), PAGES);
        for pair in stretches.windows(2) {
            let lease = |one: &Stretch<u64>| one.lease.as_ref().map(|(lease, _)| **lease);
            assert!(lease(&pair[0]) != lease(&pair[1]) && pair[0].end == pair[1].first);
        }
        let unheld: u64 = runs.unheld().iter().map(|one| one.end - one.first).sum();
        let expected = model.iter().filter(|page| matches!(page, Some((_, 0)))).count();
        assert_eq!(unheld, expected as u64);
    }

    #[test]
    fn runs_agree_with_a_table_of_pages() {
        for seed in 1..=60_u64 {
            let mut r = Random(seed);
            let (mut runs, mut model) = (PageRuns::NONE, vec![None; PAGES as usize]);
            let mut windows = Vec::new();
            for turn in 0..200 {
                let first = r.below(PAGES);
                let end = first + 1 + r.below(PAGES - first);
                let stretches = runs.stretches(first, end);
                if r.below(2) == 0 {
                    let at = r.below(stretches.len() as u64) as usize;
                    let one: &Stretch<u64> = &stretches[at];
                    let lease = one.lease.as_ref().map_or(turn, |(lease, _)| **lease);
                    match one.lease {
                        Some(_) => runs.hold(one.first, one.end),
                        None => runs.add(one.first, one.end, Arc::new(turn), one.first, 1),
                    }
                    for page in one.first..one.end {
                        let windows = model[page as usize].map_or(0, |(_, windows)| windows);
                        model[page as usize] = Some((lease, windows + 1));
                    }
                    windows.push((one.first, one.end));
                } else if !windows.is_empty() {
                    let at = r.below(windows.len() as u64) as usize;
                    let (first, end) = windows.swap_remove(at);
                    runs.release(first, end);
                    for page in first..end {
                        model[page as usize].as_mut().unwrap().1 -= 1;
                    }
                    compare(&runs, &model);
                    for one in runs.unheld() {
                        runs.remove(one.first, one.end);
                        model[one.first as usize..one.end as usize].fill(None);
                    }
                }
                compare(&runs, &model);
            }
        }
    }
}
