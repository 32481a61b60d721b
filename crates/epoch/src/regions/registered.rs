//! The registrations by which ranks of other nodes reach the regions of a dynamic window, and their
//! table. A *run* of regions that follow each other without a gap is registered with the device as
//! one memory region, so that a transfer across several of them is one transfer.
//!
//! A change is made under the exclusive lock of the table, so no rank uses a registration that is
//! replaced.

use super::region::RegionEntry;
use crate::error::Result;
use crate::fabric::net::{Exposed, Wire};
use crate::fabric::remote::{Addressed, Transport};
use crate::number::Number;
use core::ptr;
use std::collections::BTreeMap;

/// Regions that follow each other without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionRun {
    /// the address of the first region
    pub first: u64,
    /// the end of the last region
    pub end: u64,
    /// the key by which the device reaches them
    pub key: u64,
}

/// The registrations of the regions and of the table.
pub struct RegisteredRegions {
    wire: &'static Wire,
    /// end and registration of each run, by its first address
    runs: BTreeMap<u64, (u64, Exposed)>,
    table: Option<Exposed>,
}

impl RegisteredRegions {
    /// Creates it without registrations.
    pub fn new(wire: &'static Wire) -> RegisteredRegions {
        RegisteredRegions { wire, runs: BTreeMap::new(), table: None }
    }

    /// Returns the key by which the device reads the table, 0 if the table is not registered.
    pub fn table_key(&self) -> u64 {
        self.table.as_ref().map_or(0, |exposed| exposed.remote().key)
    }

    /// Makes sure that the table has room for one more entry in registered memory.
    pub fn make_room(&mut self, table: &mut Vec<RegionEntry>) -> Result<()> {
        if table.len() < table.capacity() && self.table.is_some() {
            return Ok(());
        }
        let mut larger: Vec<RegionEntry> = Vec::with_capacity((2 * table.len()).max(64));
        let bytes = (larger.capacity() * size_of::<RegionEntry>()).to_u64();
        let exposed = self.wire.expose(larger.as_mut_ptr().cast(), bytes)?;
        larger.append(table);
        // The old registration is dropped before its memory.
        self.table = Some(exposed);
        *table = larger;
        Ok(())
    }

    fn register(&self, first: u64, end: u64) -> Result<(RegionRun, Exposed)> {
        let base = ptr::with_exposed_provenance_mut(first.to_usize());
        let exposed = self.wire.expose_of_program(base, end - first)?;
        Ok((RegionRun { first, end, key: exposed.remote().key }, exposed))
    }

    /// Adds a region. Returns the run that it is in now.
    pub fn join(&mut self, base: u64, end: u64) -> Result<RegionRun> {
        let before = self.runs.range(..base).next_back();
        let first = before.filter(|(_, run)| run.0 == base).map_or(base, |(first, _)| *first);
        let last = self.runs.get(&end).map_or(end, |run| run.0);
        let (run, exposed) = self.register(first, last)?;
        self.runs.remove(&end);
        self.runs.insert(first, (last, exposed));
        Ok(run)
    }

    /// Removes a region. Returns the runs that remain of the run that it was in.
    pub fn part(&mut self, base: u64, end: u64) -> Result<[Option<RegionRun>; 2]> {
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
