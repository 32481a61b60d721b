//! What ranks of other nodes reach of the regions of a dynamic window: each run of regions that
//! follow each other without a gap is registered with the device as one, so that a transfer that
//! goes on from one into the next is one transfer; and so is the table.
//!
//! Changes happen under the exclusive lock of the table, so nobody uses what is replaced.

use super::Entry;
use crate::error::Result;
use crate::fabric::verbs::{Exposed, Nic};
use core::ptr;
use std::collections::BTreeMap;

/// Regions that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// where the first begins
    pub first: u64,
    /// where the last ends
    pub end: u64,
    /// what others must know
    pub key: u64,
}

/// What others reach.
pub struct Exposure {
    nic: &'static Nic,
    /// by where they begin
    runs: BTreeMap<u64, (u64, Exposed)>,
    table: Option<Exposed>,
}

impl Exposure {
    /// Nothing yet.
    pub fn new(nic: &'static Nic) -> Exposure {
        Exposure { nic, runs: BTreeMap::new(), table: None }
    }

    /// What others must know to read the table.
    pub fn table_key(&self) -> u64 {
        self.table.as_ref().map_or(0, |exposed| exposed.remote().key)
    }

    /// Makes sure that the table has room for one more entry, where others can read it.
    pub fn make_room(&mut self, table: &mut Vec<Entry>) -> Result<()> {
        if table.len() < table.capacity() && self.table.is_some() {
            return Ok(());
        }
        let mut larger: Vec<Entry> = Vec::with_capacity((2 * table.len()).max(64));
        let bytes = (larger.capacity() * size_of::<Entry>()) as u64;
        let exposed = self.nic.expose(larger.as_mut_ptr().cast(), bytes)?;
        larger.append(table);
        // The old one goes before its memory.
        self.table = Some(exposed);
        *table = larger;
        Ok(())
    }

    fn register(&self, first: u64, end: u64) -> Result<(Run, Exposed)> {
        let base = ptr::with_exposed_provenance_mut(first as usize);
        let exposed = self.nic.expose(base, end - first)?;
        Ok((Run { first, end, key: exposed.remote().key }, exposed))
    }

    /// Adds a region. Returns the run that it is in now.
    pub fn join(&mut self, base: u64, end: u64) -> Result<Run> {
        let before = self.runs.range(..base).next_back();
        let first = before.filter(|(_, run)| run.0 == base).map_or(base, |(first, _)| *first);
        let last = self.runs.get(&end).map_or(end, |run| run.0);
        let (run, exposed) = self.register(first, last)?;
        self.runs.remove(&end);
        self.runs.insert(first, (last, exposed));
        Ok(run)
    }

    /// Takes a region away. Returns the runs that are left of the one that it was in.
    pub fn part(&mut self, base: u64, end: u64) -> Result<[Option<Run>; 2]> {
        let Some((first, last)) = self.run_of(base) else { return Ok([None; 2]) };
        let left = (first < base).then(|| self.register(first, base)).transpose()?;
        let right = (end < last).then(|| self.register(end, last)).transpose()?;
        self.runs.remove(&first);
        Ok([left, right].map(|part| {
            let (run, exposed) = part?;
            self.runs.insert(run.first, (run.end, exposed));
            Some(run)
        }))
    }

    fn run_of(&self, address: u64) -> Option<(u64, u64)> {
        let (first, (end, _)) = self.runs.range(..=address).next_back()?;
        (address < *end).then_some((*first, *end))
    }
}
