//! Accumulates on distant elements that the target carries out: requests with the operation and the
//! operands, many runs of a type map at once. The rules are those of all accumulates
//! (docs/decisions/0004): a call on a single word reads the target's accumulate lock after its
//! operation, any other call holds that lock, and a process that is alone at the target needs none.
//!
//! On paper: no call waits. A single word is one request. A call under the lock has two more, one
//! ahead and one behind: the target takes the lock, changes the elements, and releases the lock.

use super::acc::{AccLock, LockCheck};
use super::acc_run::{AccRun, Guard};
use super::{OpenTarget, unpaired};
use crate::datatype::basic::Basic;
use crate::datatype::reduce::{self, Op};
use crate::error::Result;
use crate::fabric::location::{Distant, Unmapped};
use crate::fabric::net::Peer;
use crate::fabric::reduction::{Protection, Reduction};
use crate::fabric::remote::{
    AccumulateAt, AtTarget, Bytes, ElementRuns, Elements, Network, Portions, Remote,
};
use crate::number::Number;
use smallvec::SmallVec;

/// The most runs that are sent together.
const RUNS: usize = 128;

/// Old elements that have padding, which a result buffer must keep: they arrive here.
struct Padded {
    elements: Vec<u8>,
    basic: Basic,
    result: *mut u8,
}

/// The way to the target, and the protection of its elements.
struct Sender<'a> {
    target: Distant<'a>,
    to: &'a <Peer as Network>::AtTarget,
    guard: Guard,
    /// the target's lock; `None`: held already, or no other call changes the elements
    lock: Option<AccLock<'a>>,
}

/// An accumulate of many runs.
pub struct TargetAcc<'a> {
    sender: Sender<'a>,
    op: Op,
    /// the type of the pending runs
    what: Option<Reduction>,
    runs: SmallVec<[Elements; RUNS]>,
    padded: Vec<Padded>,
}

impl<'a> TargetAcc<'a> {
    /// Starts without runs.
    pub fn new(
        target: Distant<'a>,
        to: &'a <Peer as Network>::AtTarget,
        op: Op,
        guard: Guard,
        lock: Option<AccLock<'a>>,
    ) -> TargetAcc<'a> {
        TargetAcc {
            sender: Sender { target, to, guard, lock },
            op,
            what: None,
            runs: SmallVec::new(),
            padded: Vec::new(),
        }
    }

    /// Adds a run.
    ///
    /// # Safety
    /// As for [`super::combine::UnmappedAcc::push`].
    pub unsafe fn push(&mut self, run: AccRun) -> Result<()> {
        let Some(what) = Reduction::new(self.op, run.basic) else {
            return unpaired(self.op, run.basic);
        };
        if self.runs.len() == RUNS || !self.runs.is_empty() && self.what != Some(what) {
            // SAFETY: guaranteed by the caller.
            unsafe { self.send()? };
            self.runs.clear();
        }
        let bytes = run.bytes();
        let result = run.result.map(|result| self.arriving(run.basic, result, bytes));
        let there = run.there;
        self.runs.push(Elements { there, bytes, operands: run.origin, result });
        self.what = Some(what);
        Ok(())
    }

    /// Returns where old elements arrive.
    fn arriving(&mut self, basic: Basic, result: *mut u8, bytes: u64) -> *mut u8 {
        if basic.size() == basic.extent() {
            return result;
        }
        let mut elements = vec![0; bytes.to_usize()];
        let at = elements.as_mut_ptr();
        self.padded.push(Padded { elements, basic, result });
        at
    }

    /// Carries out the pending runs and releases the lock, also if something failed before.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn done(&mut self, before: Result<()>) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        let sent = before.and_then(|()| unsafe { self.send() });
        let mut done = match &mut self.sender.lock {
            Some(lock) => lock.release().and(sent),
            None => sent,
        };
        if !self.padded.is_empty() {
            done = Bytes::flush_local(self.sender.target.peer).and(done);
        }
        for Padded { elements, basic, result } in self.padded.drain(..) {
            let (from, count) = (elements.as_ptr().cast_mut(), elements.len() / basic.extent());
            let nothing = core::ptr::null();
            // SAFETY: elements of this call, and the caller's result.
            unsafe {
                reduce::accumulate_exclusive(Op::NoOp, basic, from, nothing, Some(result), count);
            }
        }
        done
    }

    /// Carries out a call on elements of one kind without padding.
    ///
    /// # Safety
    /// As for `push`, of all blocks.
    pub unsafe fn send_portions(
        &mut self,
        basic: Basic,
        operands: Portions<'_>,
        result: Option<*mut u8>,
    ) -> Result<()> {
        let Some(what) = Reduction::new(self.op, basic) else {
            return unpaired(self.op, basic);
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.sender.send(what, ElementRuns::Portions { operands, result }) }
    }

    /// Sends the pending runs, which are to be cleared then.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn send(&mut self) -> Result<()> {
        let Some(what) = self.what.take() else { return Ok(()) };
        // SAFETY: guaranteed by the caller.
        unsafe { self.sender.send(what, ElementRuns::Listed(&self.runs)) }
    }
}

impl Sender<'_> {
    /// Sends elements, behind the request for the lock if this call has to take it.
    ///
    /// # Safety
    /// As for [`TargetAcc::push`].
    unsafe fn send(&mut self, what: Reduction, runs: ElementRuns<'_>) -> Result<()> {
        let call = |protection| AccumulateAt { what, protection, within: self.target.at, runs };
        let (to, target) = (self.to, self.target);
        // SAFETY: the caller's promise, for each of the calls.
        unsafe {
            let Some(lock) = &mut self.lock else {
                let alone = self.guard == Guard::Alone;
                let protection = if alone { Protection::Alone } else { Protection::Locked };
                return to.accumulate(&call(protection));
            };
            if let (Guard::Single, ElementRuns::Listed([run, ..])) = (self.guard, runs)
                && what.fits(Protection::Atomic, run.there)
            {
                let fetches = run.result.is_some();
                to.accumulate(&call(Protection::Atomic))?;
                lock.check().end_later(fetches);
                return Ok(());
            }
            lock.take(Unmapped::Distant(target))?;
            to.accumulate(&call(Protection::UnderLock))
        }
    }
}

/// Returns the way to have one element changed by one atomic operation of the target, which is most
/// calls: a request and no wait. `width`: its bytes, or 0 if it has padding. Returns `None` for
/// other elements, and where the target does not combine elements.
#[inline(always)]
pub fn one_word<'a>(
    there: Distant<'a>,
    (op, basic): (Op, Basic),
    width: u64,
) -> Option<(&'a <Peer as Network>::AtTarget, Reduction)> {
    let (target, what) = (there.peer.at_target()?, Reduction::of_standard(op, basic)?);
    let last = width.wrapping_sub(1);
    let is_word = last < 8 && there.at.at & last == 0;
    debug_assert_eq!(is_word, width > 0 && what.fits(Protection::Atomic, there.at.at));
    is_word.then_some((target, what))
}

/// Carries out a call on one element in the way that [`one_word`] has returned.
///
/// # Safety
/// As for [`super::combine::UnmappedAcc::push`].
#[inline(always)]
pub unsafe fn send_word(
    to: OpenTarget<'_>,
    (target, what): (&<Peer as Network>::AtTarget, Reduction),
    at: Remote,
    (operands, result): (*const u8, Option<*mut u8>),
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if result.is_none() {
            target.accumulate_one(what, at, operands)?;
        } else {
            let (protection, bytes) = (Protection::Atomic, what.extent());
            let runs = ElementRuns::Listed(&[Elements { there: at.at, bytes, operands, result }]);
            target.accumulate(&AccumulateAt { what, protection, within: at, runs })?;
        }
    }
    LockCheck::new(to).end_later(result.is_some());
    Ok(())
}
