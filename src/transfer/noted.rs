//! What a call uses of a target, for windows that check for conflicts (`window::conflicts`).

use super::put_get::total;
use super::{Buffer, Place, TargetBuffer, elements};
use crate::datatype::reduce::Op;
use crate::datatype::type_map::Block;
use crate::error::Result;
use crate::fabric::Way;
use crate::messages;
use crate::mpi::Handle;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::window::conflicts::{Conflicts, RANGES_MAX, Used, UsedAs};

/// What a call does.
#[derive(Clone, Copy)]
pub enum CallKind {
    /// a put or a get
    Transfer(Way),
    /// an accumulate by an operation; `None`: a compare-and-swap
    Accumulate(Option<Handle>),
}

/// A call that is no conflict.
pub struct Noted<'a>(Option<(&'a Conflicts, Rank, Vec<Used>)>);

impl<'a> Noted<'a> {
    /// Fails if a call conflicts with an earlier one. `origin`: what it sends or receives; `None`:
    /// as much as the target's buffer.
    pub fn before(
        place: &Place<'a>,
        kind: CallKind,
        (origin, target): (Option<Buffer>, TargetBuffer),
    ) -> Result<Noted<'a>> {
        let Some(conflicts) = &place.node.conflicts else { return Ok(Noted(None)) };
        let Ok(rank) = place.node.target(target.rank) else { return Ok(Noted(None)) };
        // The call itself finds what is wrong with its arguments.
        let Ok(used) = place.used((rank, kind), (origin, target)) else { return Ok(Noted(None)) };
        conflicts.check(rank, &used)?;
        Ok(Noted(Some((conflicts, rank, used))))
    }

    /// Notes the call if it was carried out.
    pub fn after(self, done: Result<()>) -> Result<()> {
        if let (Ok(()), Some((conflicts, rank, used))) = (&done, self.0) {
            conflicts.note(rank, &used);
        }
        done
    }
}

impl Place<'_> {
    /// Returns the ranges of a target that a call uses.
    fn used(
        &self,
        (rank, kind): (Rank, CallKind),
        (origin, target): (Option<Buffer>, TargetBuffer),
    ) -> Result<Vec<Used>> {
        let count = elements(&messages::TARGET_COUNT, target.count)?;
        let shape = self.shape(target.datatype)?;
        let mut left = total(&shape, count)?;
        if let Some(origin) = origin {
            let sent = elements(&messages::ORIGIN_COUNT, origin.count)?;
            left = left.min(total(&self.shape(origin.datatype)?, sent)?);
        }
        let zero = self.zero(rank, target.disp);
        let op = match kind {
            CallKind::Accumulate(Some(op)) => self.host.tables.ops.find(op).copied(),
            CallKind::Accumulate(None) | CallKind::Transfer(_) => None,
        };
        let counts = !self.window.info.lock().orders_accumulates();
        let access = |piece: &Block| match kind {
            CallKind::Transfer(way) => UsedAs { writes: way == Way::Put, atomic: None },
            CallKind::Accumulate(_) => {
                let atomic = Some((piece.basic, op.filter(|_| counts)));
                UsedAs { writes: op != Some(Op::NoOp), atomic }
            }
        };
        let mut used = Vec::new();
        for piece in shape.pieces(count).take(RANGES_MAX) {
            let size = piece.basic.size().to_u64();
            let elements = piece.count.min(left / size);
            if elements == 0 {
                break;
            }
            left -= elements * size;
            let first = zero.wrapping_add_signed(piece.offset);
            // Beyond all memory: the call finds it.
            let end = first.saturating_add(elements.saturating_mul(piece.basic.extent().to_u64()));
            used.push(((first, end), access(&piece)));
        }
        Ok(used)
    }

    /// Returns the number of the byte at a displacement.
    fn zero(&self, rank: Rank, disp: i64) -> u64 {
        if let Some(memory) = self.memory {
            return memory.packed.base.wrapping_add_signed(disp);
        }
        // The displacements of a dynamic window, whose parts are many, are addresses.
        let unit = self.node.part(rank).map_or(1, |(_, _, unit)| unit);
        disp.cast_unsigned().wrapping_mul(unit)
    }
}
