//! Accumulates on memory that is not mapped here: elements are read, combined, and written back,
//! those of many runs of a type map at once. That of a process of this node goes through a buffer
//! on the stack, by a caller who is alone: who holds a lock. That of other nodes goes its own ways
//! (`distant`).
//!
//! On paper, of runs of eight bytes: 11 ns a run to read, 150 to write (the kernel's, see
//! `fabric::cma::Batch`), where a read and a write for each run took 900.

use super::acc::Acc;
use super::accumulate::Guard;
use super::bytes::{PIECE, Piece};
use super::distant::Distantly;
use super::unmapped::Unmapped;
use crate::datatype::basic::{Basic, Op};
use crate::datatype::reduce;
use crate::error::Result;
use crate::fabric::Way;
use core::mem::MaybeUninit;
use core::slice;

/// Elements that follow each other at the target, and in the origin's buffers.
#[derive(Clone, Copy)]
pub struct Run {
    /// address at the target
    pub there: u64,
    /// their kind
    pub basic: Basic,
    /// their number
    pub count: usize,
    /// operands; not looked at for MPI_NO_OP
    pub origin: *const u8,
    /// where their old values go
    pub result: Option<*mut u8>,
}

impl Run {
    /// From the first element to the end of the last.
    pub fn bytes(&self) -> u64 {
        (self.count * self.basic.extent()) as u64
    }

    /// The first `count` elements, and what is left.
    pub fn split(self, count: usize) -> (Run, Run) {
        let bytes = count * self.basic.extent();
        let rest = Run {
            there: self.there + bytes as u64,
            count: self.count - count,
            origin: self.origin.wrapping_add(bytes),
            result: self.result.map(|result| result.wrapping_add(bytes)),
            ..self
        };
        (Run { count, ..self }, rest)
    }

    /// Whether nothing of what is there is needed, because all of it is replaced.
    pub fn is_overwritten(&self, op: Op) -> bool {
        let dense = self.basic.size() == self.basic.extent();
        op == Op::Replace && self.result.is_none() && dense
    }
}

/// An accumulate of many runs.
#[allow(clippy::large_enum_variant)] // it lives on the stack, for one call
pub enum Combine<'a> {
    /// on memory of a process of this node
    Process(Pieces<'a>),
    /// on what the device reaches
    Distant(Distantly<'a>),
}

impl<'a> Combine<'a> {
    /// No runs yet. The lock is there if the guard says that it is not held.
    pub fn new(whose: Unmapped<'a>, op: Op, guard: Guard, lock: Option<Acc<'a>>) -> Combine<'a> {
        match whose {
            Unmapped::Process(_) => {
                debug_assert!(lock.is_none());
                Combine::Process(Pieces::new(whose, op))
            }
            Unmapped::Distant(target) => Combine::Distant(Distantly::new(target, op, guard, lock)),
        }
    }

    /// Adds a run.
    ///
    /// # Safety
    /// Until `done` returns: the operands may be read, the results written, and the elements at
    /// the target are inside of the window; without a lock they are changed by nobody else.
    pub unsafe fn push(&mut self, run: Run) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Combine::Process(pieces) => pieces.push(run),
                Combine::Distant(distantly) => distantly.push(run),
            }
        }
    }

    /// Does the rest and gives the lock back, also if something failed before.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn done(&mut self, before: Result<()>) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Combine::Process(pieces) => before.and_then(|()| pieces.finish()),
                Combine::Distant(distantly) => distantly.done(before),
            }
        }
    }
}

/// Runs that wait for one go.
const RUNS: usize = 128;

/// Elements in the piece begin at multiples of this.
const ALIGNMENT: usize = 16;

/// An accumulate of many runs through a piece. No two that wait overlap: each begins behind all
/// others, or the ones before go first.
pub struct Pieces<'a> {
    whose: Unmapped<'a>,
    op: Op,
    piece: Piece,
    /// each with its place in the piece; the first `count` are there
    runs: [MaybeUninit<(Run, usize)>; RUNS],
    count: usize,
    /// of the piece
    used: usize,
    /// one past the last byte at the target
    end: u64,
}

impl<'a> Pieces<'a> {
    fn new(whose: Unmapped<'a>, op: Op) -> Pieces<'a> {
        let (piece, runs) = (Piece::empty(), [const { MaybeUninit::uninit() }; RUNS]);
        Pieces { whose, op, piece, runs, count: 0, used: 0, end: 0 }
    }

    /// # Safety
    /// As for [`Combine::push`].
    unsafe fn push(&mut self, run: Run) -> Result<()> {
        let mut rest = run;
        while rest.count > 0 {
            let room = (PIECE - self.used) / rest.basic.extent();
            if self.count == RUNS || room == 0 || rest.there < self.end {
                // SAFETY: the caller's promise.
                unsafe { self.finish()? };
                continue;
            }
            let (run, behind) = rest.split(rest.count.min(room));
            self.runs[self.count].write((run, self.used));
            self.count += 1;
            self.end = behind.there;
            self.used = (self.used + run.bytes() as usize).next_multiple_of(ALIGNMENT).min(PIECE);
            rest = behind;
        }
        Ok(())
    }

    /// Does what has not been done yet. Empty afterwards.
    ///
    /// # Safety
    /// As for [`Combine::push`].
    unsafe fn finish(&mut self) -> Result<()> {
        let piece = self.piece.as_mut_ptr();
        // SAFETY: `push` has written the first `count`.
        let runs = unsafe { slice::from_raw_parts(self.runs.as_ptr().cast(), self.count) };
        let runs = || runs.iter().copied();
        let mut batch = self.whose.runs(Way::Get);
        for (run, at) in runs().filter(|(run, _): &(Run, usize)| !run.is_overwritten(self.op)) {
            // SAFETY: the piece has room for the run, and is ours.
            unsafe { batch.push(piece.wrapping_add(at), run.there, run.bytes()) };
        }
        // SAFETY: likewise.
        let read = unsafe { batch.finish_here() };
        let done = read.and_then(|()| {
            let mut batch = self.whose.runs(Way::Put);
            for (run, at) in runs() {
                let (here, Run { basic, origin, result, count, .. }) =
                    (piece.wrapping_add(at), run);
                // SAFETY: the caller vouches for operands and results; the elements were read, or
                // are all written now.
                unsafe {
                    reduce::accumulate_exclusive(self.op, basic, here, origin, result, count)
                };
                if self.op != Op::NoOp {
                    // SAFETY: as for reading; the caller vouches for the window's side.
                    unsafe { batch.push(here, run.there, run.bytes()) };
                }
            }
            // SAFETY: likewise.
            unsafe { batch.finish_here() }
        });
        (self.count, self.used, self.end) = (0, 0, 0);
        done
    }
}
