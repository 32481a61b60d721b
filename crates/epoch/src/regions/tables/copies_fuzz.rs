//! Made-up tables of regions, as they may stand in memory of another process that has damaged its
//! own, and searches in their copies. A search must end, and what it finds must be attached, and
//! lie inside of its segment.

use super::{RegionEntry, RegionLocation, Table, TableCopy};
use crate::error::{Class, Error};
use crate::rank_numbers::Rank;
use crate::sys::segment::Name;
use fompi_testkit::Choices;

/// Entries of a table.
const SLOTS_MAX: usize = 12;

/// An address or a length: mostly a small one, so that regions abut and overlap.
fn number(choices: &mut Choices) -> u64 {
    match choices.below(8) {
        0 => choices.word(),
        1 => u64::MAX - u64::from(choices.byte()),
        _ => choices.below(64) as u64,
    }
}

fn entry(choices: &mut Choices) -> RegionEntry {
    let (base, bytes, offset) = (number(choices), number(choices), number(choices));
    let segment = choices.below(3) as u64;
    let name =
        Name { pid: 1, fd: 2, device: 3, inode: 4 + segment, bytes: 4096 * segment, passer: 0 };
    RegionEntry { base, bytes, offset, name, key: 7 }
}

/// The target `region_tables`: tables, one after the other, each with two searches.
pub fn region_tables(data: &[u8]) {
    let (mut choices, mut copy) = (Choices::of(data), TableCopy::default());
    let (mut known, mut id) = (Vec::<RegionEntry>::new(), 0);
    while !choices.are_used_up() {
        id += 1;
        let is_longer = choices.below(2) == 1 && copy.regions.len() == known.len();
        let kept = if is_longer { known.len() } else { 0 };
        let slots = (kept + choices.below(SLOTS_MAX)) as u64;
        let table = Table { address: choices.word(), slots, key: 0 };
        let mut came = Vec::new();
        let renewed = copy.renew(id, (table, is_longer), |_, entries| {
            entries.iter_mut().for_each(|place| *place = entry(&mut choices));
            came.extend_from_slice(entries);
            Ok(())
        });
        match renewed {
            Ok(()) => {
                known.truncate(kept);
                known.extend(came);
            }
            Err(error) => assert_eq!(error.class(), Class::Intern),
        }
        for _ in 0..2 {
            let (first, bytes) = (number(&mut choices), number(&mut choices).max(1));
            let is_in =
                |at: u64| known.iter().any(|one| at >= one.base && at - one.base < one.bytes);
            match copy.find(Rank(3), first, bytes) {
                Ok((place, _)) => {
                    if let RegionLocation::Segment { name, offset } = place {
                        assert!(offset <= name.bytes && bytes <= name.bytes - offset);
                    }
                    assert!(is_in(first) && is_in(first + (bytes - 1)));
                    assert!((0..bytes.min(256)).all(|byte| is_in(first + byte)));
                }
                Err(Error::NotInRegion { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[cfg(test)]
#[test]
fn the_kept_tables_are_taken_or_refused() {
    fompi_testkit::replay("region_tables", region_tables);
}
