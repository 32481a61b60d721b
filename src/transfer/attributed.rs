//! Transfers by attributes: those that a call on the memory of a handle asks for
//! (docs/decisions/0033), and those that a window has by default.

use super::Place;
use super::acc::locked;
use crate::error::{Error, Result};
use crate::messages;
use crate::mpi::transfer_attributes::{ATOMIC, BLOCKING, ORDERED, REMOTE, TransferAttributes};
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::window::handles::completion;
use crate::window::notifications::Notified;
use crate::window::synchronise;
use core::ffi::c_int;

impl<'a> Place<'a> {
    /// Carries out `work`, a transfer with a rank, by the default attributes of its window, as one
    /// of a duplicate. A transfer by a handle has its memory and attributes already.
    #[cold]
    #[inline(never)]
    pub fn by_default(
        self,
        rank: c_int,
        kind: Notified,
        work: impl FnOnce(Place<'a>) -> Result<()>,
    ) -> Result<()> {
        if self.memory.is_some() || !self.window.is_special() {
            return work(self);
        }
        let memory = match self.window.as_duplicate() {
            Some(duplicate) if rank != self.host.constants.proc_null => {
                duplicate.memory_at(self.node.target(rank)?)?
            }
            _ => None,
        };
        let place = Place { memory, ..self };
        match place.access(rank)? {
            None => work(place),
            Some(to) => {
                let none = TransferAttributes::default();
                place.attributed(to.rank, kind, none, || work(place))
            }
        }
    }
}

impl Place<'_> {
    /// Does `work` as a whole exclusively with respect to other such works on a rank, and to its
    /// accumulates of several elements.
    fn exclusively(&self, rank: c_int, work: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.access(rank)? {
            Some(to) => {
                let done = locked(to, 1, |_| work());
                // Those that follow with this attribute are no conflict.
                self.node.are_ordered(Some(to.rank));
                done
            }
            None => work(),
        }
    }

    /// Carries out a transfer with a rank: `work`, as its attributes say and those of the window.
    pub fn attributed(
        &self,
        rank: Rank,
        kind: Notified,
        attributes: TransferAttributes,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (window, node) = (self.window, self.node);
        let is_combined = kind == Notified::Accumulate;
        if is_combined && attributes.has(ATOMIC) {
            return Err(Error::Wrong(&messages::MEM_NOT_ATOMIC));
        }
        let attributes = attributes.and(window.defaults.bits());
        if attributes.has(ORDERED) {
            completion::order(node, rank)?;
        }
        let work = || match attributes.has(ATOMIC) && !is_combined {
            false => work(),
            true => self.exclusively(rank.0.cast_signed(), work),
        };
        let done = match attributes.counter {
            None => work(),
            Some(index) => window
                .notification_of(node, rank, index.to_u64().cast_signed())
                .and_then(|counter| counter.behind(kind, work)),
        };
        window.as_duplicate().inspect(|duplicate| duplicate.note(rank));
        done?;
        match (attributes.has(REMOTE), attributes.has(BLOCKING)) {
            (true, _) => synchronise::complete_at(window, node, rank),
            (false, true) => completion::complete_here(node, rank),
            (false, false) => Ok(()),
        }
    }
}
