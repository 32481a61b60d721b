//! The quiet part of MPI_Win_create and MPI_Win_free, in which ranks move pages of the program
//! (`memory::adopted`). Both calls are collective:
//!
//! 1. A rank that wants to move pages announces it before the barrier of the call. Waiting ranks
//!    let the host MPI make progress there, as in every wait, because another rank may need that
//!    before it arrives.
//! 2. When all have arrived and one has asked, each rank determines whether it is quiet: all ranks
//!    of the job on this node are in the call, and it has no thread of the program. If not, it
//!    reports that. *Barrier, without progress of the host MPI.* From here on no rank calls that
//!    MPI.
//! 3. If all are quiet, those that want to move their pages. *Barrier, without progress.*
//!
//! The barriers wait for no rank that is not known to be inside of the call, so that they end soon
//! although the host MPI makes no progress.
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

/// A collective call that may have a quiet part, ahead of its barrier.
pub struct Arrival(Arc<Arena>, u64);

/// The quiet part of a call, for which a rank has asked.
pub struct QuietPart(Arc<Arena>, u64);

impl Arrival {
    /// Begins it, in each rank of the arena, ahead of the barrier of the call. `asks`: whether this
    /// rank requests that all ranks be quiet.
    pub fn begin(arena: &Arc<Arena>, asks: bool) -> Arrival {
        let round = arena.next_round();
        if asks {
            arena.report(Counter::asks(round));
        }
        Arrival(arena.clone(), round)
    }

    /// Returns the quiet part, if a rank has asked for it. Call after that barrier.
    pub fn quiet(self) -> Option<QuietPart> {
        self.0.is_reported(Counter::asks(self.1)).then_some(QuietPart(self.0, self.1))
    }
}

impl QuietPart {
    /// Adopts the pages of this rank's range, if it has one, and describes what other processes can
    /// map of it in the slot of a window. Also gives back pages that an earlier call could not.
    /// Collective over the node, in the user's call `call`.
    pub fn adopt(self, slot: Slot, call: &'static str, range: Option<&mut OwnRange>) -> Result<()> {
        let blocks = ControlBlocks::of(&self.0, slot);
        self.run(call, |quiet| {
            // A later quiet part tries again.
            let _ = quiet.and_then(adopted::give_back_unheld);
            let Some(range) = range else { return };
            match quiet {
                Ok(quiet) => range.adopt(quiet),
                Err(why) => range.stays(why),
            }
            if let Ok(part) = range.mapped() {
                let base = blocks.descriptor(self.0.rank).address;
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
        let own = match self.0.is_all_of_job() {
            true => Quiet::own_threads(),
            false => Err(NotAdopted::OtherRanks),
        };
        if own.is_err() {
            self.0.report(Counter::refuses(self.1));
        }
        quiet_barrier(&self.0, call)?;
        let is_refused = self.0.is_reported(Counter::refuses(self.1));
        match own {
            Ok(_) if is_refused => work(Err(NotAdopted::Threads)),
            // SAFETY: all ranks of the job here have been asked and have entered the barrier above;
            // none leaves the one below before this rank has entered it.
            Ok(others) => work(Ok(&unsafe { Quiet::begin(others) })),
            Err(why) => work(Err(why)),
        }
        quiet_barrier(&self.0, call)
    }
}
