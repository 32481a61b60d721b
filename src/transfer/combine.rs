//! Accumulates on memory that is not mapped here: this process reads elements, combines them, and
//! writes them back, many runs of a type map at once. Elements of another process of this node pass
//! through a buffer on the stack; the caller is alone there or holds a lock. Elements of other
//! nodes are in `distant`, or in `target_acc` if the target itself combines them; which of the two,
//! [`UnmappedAcc::new`] decides by the transport.
//!
//! On paper, for runs of eight bytes: 11 ns a run to read, 150 to write (the kernel's, see
//! `fabric::cma::Batch`), where a read and a write for each run took 900.

use super::acc::AccLock;
use super::acc_run::{AccRun, Guard};
use super::copies::{COPY_BYTES, CopyBuffer};
use super::distant::DistantAcc;
use super::target_acc::TargetAcc;
use crate::datatype::reduce::{self, Op};
use crate::error::Result;
use crate::fabric::Way;
use crate::fabric::location::Unmapped;
use crate::fabric::remote::Network;
use crate::number::Number;
use smallvec::SmallVec;

/// An accumulate of many runs.
#[allow(clippy::large_enum_variant)] // it lives on the stack, for one call
pub enum UnmappedAcc<'a> {
    /// on memory of a process of this node
    Process(CopyAcc<'a>),
    /// on memory that the device reaches
    Distant(DistantAcc<'a>),
    /// on memory of a process that carries out accumulates
    AtTarget(TargetAcc<'a>),
}

impl<'a> UnmappedAcc<'a> {
    /// Starts without runs. `lock` is given if the guard says that it is not held.
    pub fn new(
        whose: Unmapped<'a>,
        op: Op,
        guard: Guard,
        lock: Option<AccLock<'a>>,
    ) -> UnmappedAcc<'a> {
        match whose {
            Unmapped::Process(..) => {
                debug_assert!(lock.is_none());
                UnmappedAcc::Process(CopyAcc::new(whose, op))
            }
            Unmapped::Distant(target) => match target.peer.at_target() {
                Some(to) => UnmappedAcc::AtTarget(TargetAcc::new(target, to, op, guard, lock)),
                None => UnmappedAcc::Distant(DistantAcc::new(target, op, guard, lock)),
            },
        }
    }

    /// Adds a run.
    ///
    /// # Safety
    /// Until `done` returns: the operands may be read, the results written, and the elements at the
    /// target are inside of the window; without a lock no other call changes them.
    pub unsafe fn push(&mut self, run: AccRun) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self {
                UnmappedAcc::Process(copies) => copies.push(run),
                UnmappedAcc::Distant(acc) => acc.push(run),
                UnmappedAcc::AtTarget(requests) => requests.push(run),
            }
        }
    }

    /// Carries out the pending runs and releases the lock, also if something failed before.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn done(&mut self, before: Result<()>) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self {
                UnmappedAcc::Process(copies) => before.and_then(|()| copies.finish()),
                UnmappedAcc::Distant(acc) => acc.done(before),
                UnmappedAcc::AtTarget(requests) => requests.done(before),
            }
        }
    }
}

/// The most runs that one read and one write carry out together.
const RUNS: usize = 128;

/// Elements in the buffer begin at multiples of this.
const ALIGNMENT: usize = 16;

/// An accumulate of many runs through a buffer. No two pending runs overlap: each begins after all
/// others, or the others are carried out first.
pub struct CopyAcc<'a> {
    whose: Unmapped<'a>,
    op: Op,
    buffer: CopyBuffer,
    /// each run with its place in the buffer
    runs: SmallVec<[(AccRun, usize); RUNS]>,
    /// the used bytes of the buffer
    used: usize,
    /// one past the last byte at the target
    end: u64,
}

impl<'a> CopyAcc<'a> {
    fn new(whose: Unmapped<'a>, op: Op) -> CopyAcc<'a> {
        let (buffer, runs) = (CopyBuffer::empty(), SmallVec::new());
        CopyAcc { whose, op, buffer, runs, used: 0, end: 0 }
    }

    /// # Safety
    /// As for [`UnmappedAcc::push`].
    unsafe fn push(&mut self, run: AccRun) -> Result<()> {
        let mut rest = run;
        while rest.count > 0 {
            let fitting = (COPY_BYTES - self.used) / rest.basic.extent();
            if self.runs.len() == RUNS || fitting == 0 || rest.there < self.end {
                // SAFETY: guaranteed by the caller.
                unsafe { self.finish()? };
                continue;
            }
            let (run, after) = rest.split(rest.count.min(fitting));
            self.runs.push((run, self.used));
            self.end = after.there;
            self.used =
                (self.used + run.bytes().to_usize()).next_multiple_of(ALIGNMENT).min(COPY_BYTES);
            rest = after;
        }
        Ok(())
    }

    /// Carries out the pending runs; none is left afterwards.
    ///
    /// # Safety
    /// As for [`UnmappedAcc::push`].
    unsafe fn finish(&mut self) -> Result<()> {
        let buffer = self.buffer.as_mut_ptr();
        let runs = || self.runs.iter().copied();
        let mut batch = self.whose.runs(Way::Get);
        for (run, at) in runs().filter(|(run, _)| !run.is_overwritten(self.op)) {
            // SAFETY: the run fits into the buffer, which is ours.
            unsafe { batch.push(buffer.wrapping_add(at), run.there, run.bytes()) };
        }
        // SAFETY: the buffer lives until the reads are done.
        let read = unsafe { batch.finish_here() };
        let done = read.and_then(|()| {
            let mut batch = self.whose.runs(Way::Put);
            for (run, at) in runs() {
                let (here, AccRun { basic, origin, result, count, .. }) =
                    (buffer.wrapping_add(at), run);
                // SAFETY: the caller guarantees operands and results; the elements were read, or
                // are all written now.
                unsafe {
                    reduce::accumulate_exclusive(self.op, basic, here, origin, result, count)
                };
                if self.op != Op::NoOp {
                    // SAFETY: as for reading; the caller guarantees the window's side.
                    unsafe { batch.push(here, run.there, run.bytes()) };
                }
            }
            // SAFETY: the buffer lives until the writes are done.
            unsafe { batch.finish_here() }
        });
        self.runs.clear();
        (self.used, self.end) = (0, 0);
        done
    }
}
