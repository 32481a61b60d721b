//! The quiet part of MPI_Win_create and MPI_Win_free, in which ranks move pages of the program
//! (`memory::adopted`). Both calls are collective:
//!
//! 1. A rank that wants to move pages asks for the quiet part before the barrier of the call.
//!    Waiting ranks let the host MPI make progress there, as in every wait, because another rank
//!    may need that before it arrives.
//! 2. When all have arrived and one has asked, each rank determines whether it is quiet: all ranks
//!    of the job on this node are in the call, and it runs no other thread of the program. If not,
//!    it refuses. *Barrier, without progress of the host MPI.* From here on no rank calls that MPI.
//! 3. If no rank has refused, each rank that has pages to move does so. *Barrier, without
//!    progress.*
//!
//! The barriers wait only for ranks that are already inside the call, so they end soon although the
//! host MPI makes no progress.
//!
//! A process of another job (MPI_Comm_spawn, MPI_Comm_connect) may copy memory of this one by
//! process_vm at any time, so no rank of connected jobs is ever quiet.

use crate::arena::barrier::quiet_barrier;
use crate::arena::control_blocks::ControlBlocks;
use crate::arena::mapped_bytes::MappedBytes;
use crate::arena::{Arena, Counter};
use crate::error::Result;
use crate::memory::adopted::{self, NotAdopted, Quiet};
use crate::memory::own_ranges::OwnRange;
use crate::rank_numbers::Slot;
use crate::report;
use std::sync::Arc;

/// A collective call before its barrier, which may get a quiet part.
pub struct Arrival {
    arena: Arc<Arena>,
    /// the number of the call
    round: u64,
}

/// The quiet part of a call, for which a rank has asked.
pub struct QuietPart {
    arena: Arc<Arena>,
    /// the number of the call
    round: u64,
}

impl Arrival {
    /// Begins it, in each rank of the arena, ahead of the barrier of the call. `asks`: whether this
    /// rank asks for a quiet part.
    pub fn begin(arena: &Arc<Arena>, asks: bool) -> Arrival {
        let round = arena.next_round();
        if asks {
            arena.raise(Counter::asks(round));
        }
        Arrival { arena: arena.clone(), round }
    }

    /// Returns the quiet part, if a rank has asked for it. Call after that barrier.
    pub fn quiet(self) -> Option<QuietPart> {
        let Arrival { arena, round } = self;
        arena.is_raised(Counter::asks(round)).then_some(QuietPart { arena, round })
    }
}

impl QuietPart {
    /// Adopts the pages of this rank's range, if it has one, and describes what other processes can
    /// map of it in the slot of a window. Also gives back pages that an earlier call could not.
    /// Collective over the node, in the user's call `call`.
    pub fn adopt(self, slot: Slot, call: &'static str, range: Option<&mut OwnRange>) -> Result<()> {
        let blocks = ControlBlocks::of(&self.arena, slot);
        self.run(call, |quiet| {
            // A later quiet part tries again.
            let _ = quiet.and_then(adopted::give_back_unheld);
            let Some(range) = range else { return };
            match quiet {
                Ok(quiet) => range.adopt(quiet),
                Err(why) => range.not_adopted(why),
            }
            if let Ok(part) = range.mapped() {
                let base = blocks.descriptor(self.arena.rank).address;
                blocks.set_mapped_bytes(MappedBytes::part(base, part.inner, part.place));
            }
        })
    }

    /// Makes pages private again that no window covers. Collective as [`QuietPart::adopt`].
    pub fn give_back(self, call: &'static str) -> Result<()> {
        self.run(call, |quiet| report::kept(quiet.and_then(adopted::give_back_unheld)))
    }

    /// Runs the quiet part: `work` moves pages, or gets the reason why it may not.
    fn run(
        &self,
        call: &'static str,
        work: impl FnOnce(core::result::Result<&Quiet, NotAdopted>),
    ) -> Result<()> {
        let own = match self.arena.is_all_of_job() {
            true => Quiet::own_threads(),
            false => Err(NotAdopted::OtherRanks),
        };
        if own.is_err() {
            self.arena.raise(Counter::refuses(self.round));
        }
        quiet_barrier(&self.arena, call)?;
        let is_refused = self.arena.is_raised(Counter::refuses(self.round));
        match own {
            Ok(_) if is_refused => work(Err(NotAdopted::NotQuiet)),
            // SAFETY: all ranks of the job here have been asked and have entered the barrier above;
            // none leaves the one below before this rank has entered it.
            Ok(other_threads) => work(Ok(&unsafe { Quiet::begin(other_threads) })),
            Err(why) => work(Err(why)),
        }
        quiet_barrier(&self.arena, call)
    }
}
