//! Accesses of this process that conflict (MPI-4.1 §12.3, §12.7), for windows on which the program
//! asks for it (`FOMPI_CHECK=conflicts`, `fompi_conflicts`). An access is noted until a call orders
//! the later ones behind it: a flush, the end of the epoch, or an order. Not for accesses of two
//! processes, nor for loads and stores.
//!
//! Two accesses to the same bytes of a target do not conflict if both only read, or if both are
//! accumulates with the same predefined datatype: the standard orders those of one process. If the
//! info key accumulate_ordering takes an order away, they need one operation, or MPI_NO_OP, too.
//!
//! Such a window serves no fast-path call: `gpu::watch` leads its transfers to `transfer::staged`,
//! and `WindowPuts::watched` the calls that complete operations to `complete_puts`.

use crate::datatype::basic::Basic;
use crate::datatype::reduce::Op;
use crate::error::{Error, Result};
use crate::rank_numbers::Rank;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The ranges that a window notes at most. Accesses beyond them are not noted.
pub const RANGES_MAX: usize = 1 << 16;

/// An access, as far as it decides about conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedAs {
    /// whether it may change the target
    pub writes: bool,
    /// of an accumulate: the kind of its elements, and its operation if that counts
    pub atomic: Option<(Basic, Option<Op>)>,
}

impl UsedAs {
    /// Whether two accesses may be to the same bytes.
    fn agrees(self, other: UsedAs) -> bool {
        if !self.writes && !other.writes {
            return true;
        }
        let (Some((kind, op)), Some((other_kind, other_op))) = (self.atomic, other.atomic) else {
            return false;
        };
        let reads = !self.writes || !other.writes;
        kind == other_kind && (reads || op.is_none() || other_op.is_none() || op == other_op)
    }

    /// Its name for a message.
    fn name(self) -> &'static str {
        match (self.writes, self.atomic) {
            (true, None) => "a put",
            (false, None) => "a get",
            (true, Some(_)) => "an accumulate",
            (false, Some(_)) => "an accumulate with MPI_NO_OP",
        }
    }
}

/// Disjoint ranges of bytes that do not touch: where each begins, and where it ends.
#[derive(Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Returns bytes that a range shares with one of these.
    fn shared(&self, (first, end): (u64, u64)) -> Option<(u64, u64)> {
        let (begin, stop) = self.0.range(..end).next_back()?;
        (*stop > first).then_some((first.max(*begin), end.min(*stop)))
    }

    fn add(&mut self, (mut first, mut end): (u64, u64)) {
        while let Some((&begin, &stop)) = self.0.range(..=end).next_back()
            && stop >= first
        {
            self.0.remove(&begin);
            (first, end) = (first.min(begin), end.max(stop));
        }
        self.0.insert(first, end);
    }
}

/// The bytes of a target that each kind of access has used.
type Noted = Vec<(UsedAs, Ranges)>;

/// A range of bytes of a target, and how a call uses it.
pub type Used = ((u64, u64), UsedAs);

/// The accesses of this process to a window that no call has ordered.
#[derive(Default)]
pub struct Conflicts(Mutex<BTreeMap<Rank, Noted>>);

impl Conflicts {
    /// Fails if a range conflicts with an earlier access to the rank.
    pub fn check(&self, rank: Rank, used: &[Used]) -> Result<()> {
        let noted = self.0.lock();
        let Some(noted) = noted.get(&rank) else { return Ok(()) };
        for (range, access) in used {
            for (other, ranges) in noted.iter().filter(|(other, _)| !access.agrees(*other)) {
                if let Some((first, end)) = ranges.shared(*range) {
                    let (access, other) = (access.name(), other.name());
                    return Err(Error::Conflict { access, other, rank, first, end });
                }
            }
        }
        Ok(())
    }

    /// Notes the ranges of an access to a rank that was carried out.
    pub fn note(&self, rank: Rank, used: &[Used]) {
        let mut all = self.0.lock();
        let count = |noted: &Noted| noted.iter().map(|(_, ranges)| ranges.0.len()).sum::<usize>();
        if all.values().map(count).sum::<usize>() + used.len() > RANGES_MAX {
            return;
        }
        let noted = all.entry(rank).or_default();
        for (range, access) in used {
            match noted.iter_mut().find(|(known, _)| known == access) {
                Some((_, ranges)) => ranges.add(*range),
                None => {
                    let mut ranges = Ranges::default();
                    ranges.add(*range);
                    noted.push((*access, ranges));
                }
            }
        }
    }

    /// Forgets the accesses to a rank, or to all, behind which all later ones are.
    pub fn ordered(&self, rank: Option<Rank>) {
        self.0.lock().retain(|of, _| rank.is_some_and(|rank| rank != *of));
    }

    /// Forgets the accesses to a rank that only read, or those to all: their results have arrived.
    pub fn arrived(&self, rank: Option<Rank>) {
        let mut all = self.0.lock();
        for (_, noted) in all.iter_mut().filter(|(of, _)| rank.is_none_or(|rank| rank == **of)) {
            noted.retain(|(access, _)| access.writes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUT: UsedAs = UsedAs { writes: true, atomic: None };
    const GET: UsedAs = UsedAs { writes: false, atomic: None };

    fn sum(kind: Basic, op: Option<Op>) -> UsedAs {
        UsedAs { writes: true, atomic: Some((kind, op)) }
    }

    fn all() -> Vec<UsedAs> {
        let read = UsedAs { writes: false, ..sum(Basic::I64, None) };
        vec![PUT, GET, sum(Basic::I64, None), sum(Basic::F64, None), read]
    }

    #[test]
    fn accesses_agree_that_read_or_accumulate_one_type() {
        let agree = |a: usize, b: usize| all()[a].agrees(all()[b]);
        let expected = [
            [false, false, false, false, false],
            [false, true, false, false, true],
            [false, false, true, false, true],
            [false, false, false, true, false],
            [false, true, true, false, true],
        ];
        for (a, row) in expected.iter().enumerate() {
            for (b, agrees) in row.iter().enumerate() {
                assert_eq!(agree(a, b), *agrees, "{a} {b}");
            }
        }
    }

    #[test]
    fn without_an_order_operations_count() {
        let of = |op| sum(Basic::I64, Some(op));
        assert!(of(Op::Sum).agrees(of(Op::Sum)) && !of(Op::Sum).agrees(of(Op::Max)));
        let read = UsedAs { writes: false, ..of(Op::NoOp) };
        assert!(read.agrees(of(Op::Max)) && of(Op::Sum).agrees(sum(Basic::I64, None)));
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Ranges::default();
        for range in [(0, 8), (16, 24), (8, 16), (40, 48), (30, 60)] {
            ranges.add(range);
        }
        assert_eq!(ranges.0.into_iter().collect::<Vec<_>>(), [(0, 24), (30, 60)]);
    }

    #[test]
    fn a_conflict_names_the_shared_bytes() {
        let (conflicts, rank) = (Conflicts::default(), Rank(1));
        conflicts.note(rank, &[((8, 16), PUT), ((100, 104), GET)]);
        let check = |range, access| conflicts.check(rank, &[(range, access)]);
        let error =
            |access, other, (first, end)| Err(Error::Conflict { access, other, rank, first, end });
        assert_eq!(check((0, 9), GET), error("a get", "a put", (8, 9)));
        assert_eq!(check((96, 200), PUT), error("a put", "a get", (100, 104)));
        assert_eq!(check((0, 8), PUT), Ok(()));
        assert_eq!(check((16, 100), PUT), Ok(()));
        assert_eq!(check((100, 104), GET), Ok(()));
        assert_eq!(conflicts.check(Rank(2), &[((8, 16), PUT)]), Ok(()));
        conflicts.arrived(Some(rank));
        assert_eq!(check((96, 200), PUT), Ok(()));
        assert!(check((8, 16), PUT).is_err());
        conflicts.ordered(Some(rank));
        assert_eq!(check((8, 16), PUT), Ok(()));
    }

    #[test]
    fn a_window_notes_a_bounded_number_of_ranges() {
        let conflicts = Conflicts::default();
        for at in 0..RANGES_MAX as u64 + 10 {
            conflicts.note(Rank(0), &[((2 * at, 2 * at + 1), PUT)]);
        }
        let last = 2 * RANGES_MAX as u64;
        assert!(conflicts.check(Rank(0), &[((last - 2, last - 1), PUT)]).is_err());
        assert!(conflicts.check(Rank(0), &[((last, last + 1), PUT)]).is_ok());
    }
}
