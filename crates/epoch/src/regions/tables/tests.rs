//! The table of regions and its copies against a model that knows each byte; two ranks whose words
//! are on the heap, so that no process is needed.

use super::*;
use crate::error::Class;
use core::cell::Cell;
use fompi_simulator::thread_words::{self, Heap, HeapWords};
use fompi_testkit::Random;

const OWNER: u32 = 0;
/// The owner's memory, by address: two segments that abut, then memory of its own.
const SEGMENTS: [(u64, u64); 2] = [(1000, 1400), (1400, 1700)];
const LAST: u64 = 2300;

fn name(segment: usize) -> Name {
    let (fd, inode) = (segment as i32, 70 + segment as u64);
    Name { pid: 1, fd, device: 5, inode, bytes: 4096, passer: 0 }
}

/// Returns the segment of a range and its offset there, if the range is in one segment.
fn place(base: u64, bytes: u64) -> Option<(Name, u64)> {
    let inside = |(first, end): (u64, u64)| base >= first && base.saturating_add(bytes) <= end;
    let segment = SEGMENTS.iter().position(|segment| inside(*segment))?;
    Some((name(segment), 8 + base - SEGMENTS[segment].0))
}

/// An owner and an origin.
struct World {
    words: [HeapWords; 2],
    owner: Regions,
    origin: Regions,
    /// entries that the origin has read
    read: Cell<u64>,
}

impl World {
    fn new(threads: bool) -> World {
        let heap = Heap::window(2);
        World {
            words: [
                thread_words::words(&heap, Rank(0), 100),
                thread_words::words(&heap, Rank(1), 100),
            ],
            owner: Regions::new(threads, None),
            origin: Regions::new(threads, None),
            read: Cell::new(0),
        }
    }

    fn attach(&self, base: u64, size: i64) -> Result<()> {
        let place = place(base, size.max(0) as u64);
        self.owner.attach(&self.words[0], 0, (base, size), place)
    }

    fn detach(&self, base: u64) -> Result<()> {
        self.owner.detach(&self.words[0], 0, base).map(drop)
    }

    fn locate(&self, first: u64, bytes: u64) -> Result<RegionLocation> {
        let words = &self.words[1];
        let read = |table: Table, entries: &mut [RegionEntry]| {
            self.read.set(self.read.get() + entries.len() as u64);
            self.owner.own.with(|own| {
                let slot =
                    (table.address - own.table().address) as usize / size_of::<RegionEntry>();
                entries.copy_from_slice(&own.table[slot..slot + entries.len()]);
            });
            Ok(())
        };
        regions::while_held(words, Rank(OWNER), 0, || {
            self.origin.locate(words, Rank(OWNER), (first, bytes), read).map(|(place, _)| place)
        })
    }
}

/// Regions as a list, and every answer by going through all of it.
#[derive(Default)]
struct Model(Vec<(u64, u64)>);

impl Model {
    fn attach(&mut self, base: u64, bytes: u64) -> Option<(u64, u64)> {
        let overlaps = |region: &&(u64, u64)| {
            bytes > 0 && region.1 > 0 && base < region.0 + region.1 && region.0 < base + bytes
        };
        let overlapped = self.0.iter().find(overlaps).copied();
        if overlapped.is_none() {
            self.0.push((base, bytes));
        }
        overlapped
    }

    fn detach(&mut self, base: u64) -> bool {
        let chosen = self.0.iter().copied().filter(|region| region.0 == base).min();
        self.0.retain({
            let mut is_gone = false;
            move |region| {
                is_gone || Some(*region) != chosen || std::mem::replace(&mut is_gone, true)
            }
        });
        chosen.is_some()
    }

    /// The region of a byte.
    fn of(&self, address: u64) -> Option<(u64, u64)> {
        let has = |region: &&(u64, u64)| region.0 <= address && address < region.0 + region.1;
        self.0.iter().find(has).copied()
    }

    /// Returns the segment of a byte and its offset there, if its whole region is in one segment.
    fn byte(&self, address: u64) -> Option<(Name, u64)> {
        let (base, bytes) = self.of(address).unwrap();
        place(base, bytes).map(|(name, offset)| (name, offset + (address - base)))
    }

    fn locate(&self, first: u64, bytes: u64) -> core::result::Result<RegionLocation, u64> {
        let outside = (first..first + bytes).find(|address| self.of(*address).is_none());
        if let Some(address) = outside {
            return Err(address);
        }
        let places: Vec<_> = (first..first + bytes).map(|address| self.byte(address)).collect();
        if places.iter().all(Option::is_none) {
            return Ok(RegionLocation::Private);
        }
        let is_one = places[0].is_some_and(|(name, offset)| {
            { places.iter().zip(offset..) }.all(|(place, offset)| *place == Some((name, offset)))
        });
        match places[0] {
            Some((name, offset)) if is_one => Ok(RegionLocation::Segment { name, offset }),
            _ => Ok(RegionLocation::Mixed),
        }
    }
}

/// One step: what happened, so that a test can tell that everything did.
fn step(world: &World, model: &mut Model, random: &mut Random) -> &'static str {
    let bytes = [0, 1, 8, 40][random.below(4) as usize] + random.below(3);
    // Often exactly behind another region, or at the end of a segment, so that many abut.
    let base = match (random.below(8), model.0.len() as u64) {
        (0..=3, regions @ 1..) => {
            let region = model.0[random.below(regions) as usize];
            region.0 + region.1
        }
        (4, _) => SEGMENTS[random.below(2) as usize].1 - random.below(2) * bytes,
        _ => 990 + random.below(LAST - 990),
    };
    match random.below(16) {
        0..=5 => match (model.attach(base, bytes), world.attach(base, bytes as i64)) {
            (None, Ok(())) => "attached",
            (Some(_), Err(Error::Overlap { attached_base, attached_bytes, .. })) => {
                // There may be several; this is one of them.
                assert!(model.0.contains(&(attached_base, attached_bytes)));
                assert!(attached_base < base + bytes && base < attached_base + attached_bytes);
                "overlapped"
            }
            (expected, got) => panic!("{base} {bytes}: {expected:?} {got:?}"),
        },
        6 => {
            let some = model.0.get(random.below(80) as usize).map(|region| region.0);
            let some = some.filter(|_| random.below(4) > 0).unwrap_or(base);
            let expected = model.detach(some);
            let got = world.detach(some);
            assert_eq!(got, if expected { Ok(()) } else { Err(Error::NotAttached { base: some }) });
            if expected { "detached" } else { "not attached" }
        }
        _ => {
            let (rank, first, bytes) = (OWNER, base.saturating_sub(random.below(60)), bytes + 1);
            let outside = |address| Error::NotInRegion { rank: Rank(rank), first, bytes, address };
            let expected = model.locate(first, bytes).map_err(outside);
            assert_eq!(world.locate(first, bytes), expected);
            match expected {
                Ok(RegionLocation::Private) => "private",
                Ok(RegionLocation::Segment { .. })
                    if model.of(first) == model.of(first + bytes - 1) =>
                {
                    "one"
                }
                Ok(RegionLocation::Segment { .. }) => "one segment",
                Ok(RegionLocation::Mixed) => "mixed",
                Err(_) => "outside",
            }
        }
    }
}

#[test]
fn regions_are_what_a_list_of_bytes_says() {
    let mut met: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..5 {
        let (world, mut model, mut random) =
            (World::new(seed % 2 == 0), Model::default(), Random(seed));
        for _ in 0..10_000 {
            *met.entry(step(&world, &mut model, &mut random)).or_default() += 1;
        }
        for base in model.0.clone() {
            assert_eq!(world.detach(base.0), Ok(()));
        }
        assert!(world.owner.own.with(|own| own.table.is_empty() && own.slots.is_empty()));
        assert!(world.owner.own.with(|own| own.empty.is_empty()));
    }
    let all = ["attached", "overlapped", "detached", "not attached", "private", "one"];
    for what in all.into_iter().chain(["one segment", "mixed", "outside"]) {
        assert!(met.get(what).is_some_and(|count| *count > 50), "{what}: {met:?}");
    }
}

#[test]
fn what_cannot_be_attached_is_refused_and_changes_nothing() {
    let world = World::new(false);
    world.attach(5000, 100).unwrap();
    let refused = |base, size| world.attach(base, size).unwrap_err();
    assert_eq!(refused(9000, -1).class(), Class::Size);
    assert_eq!(refused(u64::MAX - 9, 11).class(), Class::RmaAttach);
    assert_eq!(refused(9000, i64::MAX).class(), Class::RmaAttach);
    let overlap = refused(5099, 10);
    assert_eq!(overlap.class(), Class::RmaAttach);
    assert_eq!(
        overlap.to_string(),
        "10 bytes at 0x13eb overlap the region of 100 bytes at 0x1388, which is attached"
    );
    assert_eq!(refused(4000, 1001).class(), Class::RmaAttach);
    assert_eq!(refused(5000, 100).class(), Class::RmaAttach);
    assert_eq!(world.detach(5001).unwrap_err().class(), Class::RmaAttach);
    assert_eq!(world.locate(5000, 100), Ok(RegionLocation::Private));
    assert_eq!(world.locate(5000, 101).unwrap_err().class(), Class::RmaRange);
    assert_eq!(world.locate(u64::MAX, 2).unwrap_err().class(), Class::RmaRange);
    world.detach(5000).unwrap();
    assert_eq!(world.detach(5000), Err(Error::NotAttached { base: 5000 }));
    assert_eq!(world.locate(5000, 1).unwrap_err().class(), Class::RmaRange);
}

/// MPI-4.1 §12.2.4 has no lower bound on the size but zero, and such a region has no part that
/// could be attached twice.
#[test]
fn regions_without_bytes_are_attached_and_detached_anywhere() {
    let world = World::new(false);
    world.attach(0, 0).unwrap(); // MPI_BOTTOM
    world.attach(2000, 50).unwrap();
    for base in [2000, 2025, 2025, 2050] {
        world.attach(base, 0).unwrap();
    }
    for base in [2000, 2025, 2025, 2050, 0] {
        assert_eq!(world.locate(2000, 50), Ok(RegionLocation::Private));
        world.detach(base).unwrap();
    }
    assert_eq!(world.detach(2025), Err(Error::NotAttached { base: 2025 }));
    assert_eq!(world.locate(2000, 50), Ok(RegionLocation::Private));
    world.detach(2000).unwrap();
    assert!(world.locate(2000, 50).is_err());
}

#[test]
fn of_thousands_of_regions_only_new_ones_are_read_until_one_is_detached() {
    const COUNT: u64 = 5000;
    let world = World::new(false);
    for region in 0..COUNT {
        world.attach(LAST + region * 16, 16).unwrap();
        assert_eq!(world.locate(LAST, (region + 1) * 16), Ok(RegionLocation::Private));
    }
    assert_eq!(world.read.get(), COUNT);
    world.locate(LAST + 17, 3).unwrap();
    assert_eq!(world.read.get(), COUNT);
    world.detach(LAST + 32).unwrap();
    world.locate(LAST, 32).unwrap();
    assert_eq!(world.read.get(), COUNT + COUNT - 1);
    assert!(world.locate(LAST, 33).is_err());
    assert_eq!(world.locate(LAST + 48, (COUNT - 3) * 16), Ok(RegionLocation::Private));
}

#[test]
fn a_table_that_could_not_be_read_is_read_again() {
    let world = World::new(false);
    let words = &world.words[1];
    world.attach(LAST, 8).unwrap();
    let died = Error::Died { rank: Rank(OWNER), pid: 1 };
    let failing = |_: Table, _: &mut [RegionEntry]| Err(died.clone());
    assert_eq!(world.origin.locate(words, Rank(OWNER), (LAST, 8), failing), Err(died.clone()));
    assert_eq!(world.locate(LAST, 8), Ok(RegionLocation::Private));
}

#[test]
fn a_damaged_table_is_refused_and_the_copy_stays() {
    let entry = |base, bytes| RegionEntry { base, bytes, ..RegionEntry::default() };
    let mut copy = TableCopy::default();
    let renew = |copy: &mut TableCopy, slots, is_longer, come: [RegionEntry; 2]| {
        let table = Table { address: 64, slots, key: 0 };
        let read = |_: Table, entries: &mut [RegionEntry]| {
            entries.copy_from_slice(&come);
            Ok(())
        };
        copy.renew(1, (table, is_longer), read)
    };
    assert_eq!(renew(&mut copy, 2, false, [entry(8, 8), entry(16, 8)]), Ok(()));
    // A region without bytes continues itself, and so does one that goes around.
    let far = u64::MAX - 8;
    for damaged in [entry(16, 0), entry(16, u64::MAX - 15), entry(far, 16), entry(far, 4)] {
        let refused = renew(&mut copy, 2, false, [entry(8, 8), damaged]);
        assert_eq!(refused.unwrap_err().class(), Class::Intern, "{damaged:?}");
    }
    for (slots, is_longer) in [(1, true), (u64::MAX, false), (1 << 60, true)] {
        let refused = renew(&mut copy, slots, is_longer, [entry(8, 8); 2]);
        assert_eq!(refused.unwrap_err().class(), Class::Intern, "{slots} slots");
    }
    // In a segment of 64 bytes.
    let name = Name { pid: 1, fd: 2, device: 3, inode: 4, bytes: 64, passer: 0 };
    let inside = |offset| RegionEntry { offset, name, ..entry(16, 8) };
    for offset in [57, 64, u64::MAX] {
        let refused = renew(&mut copy, 2, false, [entry(8, 8), inside(offset)]);
        assert_eq!(refused.unwrap_err().class(), Class::Intern, "at {offset}");
    }
    assert_eq!(copy.find(Rank(0), 8, 16), Ok((RegionLocation::Private, 0)));
    assert_eq!(renew(&mut copy, 2, false, [entry(8, 8), inside(56)]), Ok(()));
}
