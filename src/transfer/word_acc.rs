//! Accumulates on words of the device, many at once: sends all requests, then waits for all
//! answers.
//!
//! On paper: a sum without a result is a request for each word and no wait. A sum with a result is
//! one wait for [`WORDS_MAX`] words. MPI_NO_OP reads the words, as messages. Any other operation
//! reads them, as messages too, and then swaps each word if it still has that value: two waits, and
//! one more for all words that others changed meanwhile. A word whose value the operation does not
//! change needs no request. After a single word the lock of the target is read, in the same waits.

use super::acc::LockCheck;
use super::acc_run::AccRun;
use crate::datatype::reduce::{self, Op};
use crate::error::Result;
use crate::fabric::location::{Distant, Unmapped};
use crate::fabric::net::Peer;
use crate::fabric::remote::{Bytes, Network, Remote};
use crate::fabric::{Fetch, Way};
use core::cell::Cell;
use smallvec::SmallVec;

/// The most words that are changed with one wait.
const WORDS_MAX: usize = Peer::WORDS_MAX;
/// The most runs that are carried out together.
const RUNS: usize = WORDS_MAX;

/// An accumulate of many runs of words.
pub struct WordAcc<'a> {
    target: Distant<'a>,
    op: Op,
    runs: SmallVec<[AccRun; RUNS]>,
    /// the number of words in all of them; at most [`WORDS_MAX`], except for MPI_NO_OP
    words: usize,
    /// the end of a call on a single word; `None`: the call holds the lock
    pub check: Option<LockCheck<'a>>,
    /// the value of the lock after the last request, if the call has waited for that
    lock: Cell<Option<u64>>,
}

/// A word of a run, with its old and its new value.
#[derive(Clone, Copy)]
struct Word {
    run: AccRun,
    /// the value at the target before
    seen: u64,
    /// the value that it gets
    new: u64,
}

impl Word {
    /// # Safety
    /// The run has an operand.
    unsafe fn operand(&self) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { self.run.origin.cast::<u64>().read_unaligned() }
    }

    /// # Safety
    /// The run has an operand.
    unsafe fn combined(&self, op: Op) -> u64 {
        let (mut new, AccRun { basic, origin, .. }) = (self.seen, self.run);
        let here = (&raw mut new).cast();
        // SAFETY: a word of ours, which is as large as an element, and the caller's operand.
        unsafe { reduce::accumulate_exclusive(op, basic, here, origin, None, 1) };
        new
    }

    /// Stores the old value into the result.
    ///
    /// # Safety
    /// The result may be written.
    unsafe fn found(&self) {
        if let Some(result) = self.run.result {
            // SAFETY: guaranteed by the caller.
            unsafe { result.cast::<u64>().write_unaligned(self.seen) };
        }
    }
}

impl<'a> WordAcc<'a> {
    /// Starts without runs.
    pub fn new(target: Distant<'a>, op: Op) -> WordAcc<'a> {
        let (runs, lock) = (SmallVec::new(), Cell::new(None));
        WordAcc { target, op, runs, words: 0, check: None, lock }
    }

    /// Adds a run of words.
    ///
    /// # Safety
    /// As for [`super::combine::UnmappedAcc::push`].
    pub unsafe fn push(&mut self, run: AccRun) -> Result<()> {
        let mut rest = run;
        while rest.count > 0 {
            let fitting = if self.op == Op::NoOp { usize::MAX } else { WORDS_MAX - self.words };
            if self.runs.len() == RUNS || fitting == 0 {
                // SAFETY: guaranteed by the caller.
                unsafe { self.finish()? };
                continue;
            }
            let (run, after) = rest.split(rest.count.min(fitting));
            self.runs.push(run);
            self.words += run.count;
            rest = after;
        }
        Ok(())
    }

    fn at(&self, there: u64) -> Remote {
        Remote { at: there, ..self.target.at }
    }

    /// Carries out the pending runs; none is left afterwards.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn finish(&mut self) -> Result<()> {
        let Some(first) = self.runs.first() else { return Ok(()) };
        let fetches = first.result.is_some();
        // SAFETY: guaranteed by the caller.
        let done = unsafe {
            match self.op {
                Op::Sum if !fetches => self.post(),
                Op::NoOp => self.read(|_, run| run.result),
                _ => self.fetch(),
            }
        };
        self.runs.clear();
        self.words = 0;
        done?;
        match (self.check.take(), self.lock.take()) {
            (Some(check), Some(lock)) => check.end(lock),
            (Some(check), None) => {
                check.end_later(false);
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    /// Changes words, and waits for their old values.
    fn fetch_all(
        &self,
        which: impl Fn(usize) -> (Remote, Fetch),
        before: &mut [u64],
    ) -> Result<()> {
        let (peer, Some(check)) = (self.target.peer, self.check) else {
            return self.target.peer.fetch_all(which, before);
        };
        debug_assert_eq!(before.len(), 1);
        let (at, op) = which(0);
        let (old, lock) = peer.fetch_and_read(at, op, check.lock())?;
        before[0] = old;
        self.lock.set(Some(lock));
        Ok(())
    }

    /// Adds to words, and waits for nothing.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn post(&self) -> Result<()> {
        let mut words = SmallVec::new();
        self.list(&mut words);
        // Elements that this rank wrote while it was alone at the target.
        self.target.peer.order_puts();
        self.target.peer.post_all(words.len(), |index| {
            let word = &words[index];
            // SAFETY: guaranteed by the caller.
            (self.at(word.run.there), unsafe { word.operand() })
        })
    }

    /// Reads the words, each run to the address that `to` returns, after all requests that were
    /// sent before: accumulates of one origin on one element happen in their order (MPI-4.1
    /// §12.7.2).
    ///
    /// # Safety
    /// The run fits into that memory, which may be written.
    unsafe fn read(&self, mut to: impl FnMut(usize, &AccRun) -> Option<*mut u8>) -> Result<()> {
        self.target.peer.order();
        let mut batch = Unmapped::Distant(self.target).runs(Way::Get);
        let mut before = 0;
        for run in &self.runs {
            if let Some(to) = to(before, run) {
                // SAFETY: guaranteed by the caller.
                unsafe { batch.push(to, run.there, run.bytes()) };
            }
            before += run.count;
        }
        let Some(check) = self.check else {
            // SAFETY: the memory may be written until the reads are done.
            return unsafe { batch.finish_here() };
        };
        // SAFETY: the memory may be written until `flush_local` below.
        let sent = unsafe { batch.finish() };
        self.target.peer.order_reads();
        let lock = self.target.peer.read(check.lock());
        let came = self.target.peer.flush_local();
        self.lock.set(Some(sent.and(came).and(lock)?));
        Ok(())
    }

    /// Adds the words of the runs, one by one.
    fn list(&self, words: &mut SmallVec<[Word; WORDS_MAX]>) {
        let words_of = |run: &AccRun| {
            let run = *run;
            (0..run.count).map(move |index| run.split(index).1.split(1).0)
        };
        let all = self.runs.iter().flat_map(words_of);
        words.extend(all.map(|run| Word { run, seen: 0, new: 0 }));
    }

    /// Carries out any operation but a sum without a result.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn fetch(&self) -> Result<()> {
        let mut words = SmallVec::new();
        self.list(&mut words);
        let mut before = [0; WORDS_MAX];
        if self.op != Op::Sum {
            let first = before.as_mut_ptr();
            // SAFETY: all words fit into the array.
            unsafe { self.read(|index, _| Some(first.wrapping_add(index).cast()))? };
            for (word, seen) in words.iter_mut().zip(before) {
                word.seen = seen;
            }
            // SAFETY: guaranteed by the caller.
            return unsafe { self.change(&mut words, &mut before) };
        }
        self.target.peer.order();
        let before = &mut before[..words.len()];
        let sum = |index: usize| {
            let word: &Word = &words[index];
            // SAFETY: guaranteed by the caller.
            (self.at(word.run.there), Fetch::Add(unsafe { word.operand() }))
        };
        self.fetch_all(sum, before)?;
        for (word, seen) in words.iter_mut().zip(before) {
            word.seen = *seen;
            // SAFETY: guaranteed by the caller.
            unsafe { word.found() };
        }
        Ok(())
    }

    /// Changes words that were read. Words that others have changed since are tried again, all
    /// together, from their new values.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn change(&self, mut left: &mut [Word], before: &mut [u64; WORDS_MAX]) -> Result<()> {
        loop {
            let changes = |_, word: &mut Word| {
                // SAFETY: guaranteed by the caller.
                word.new = unsafe { word.combined(self.op) };
                word.new != word.seen
            };
            // SAFETY: guaranteed by the caller.
            left = unsafe { keep(left, changes) };
            if left.is_empty() {
                return Ok(());
            }
            let before = &mut before[..left.len()];
            let swap = |index: usize| {
                let Word { run, seen: expect, new } = left[index];
                (self.at(run.there), Fetch::CompareSwap { expect, new })
            };
            self.fetch_all(swap, before)?;
            let failed = |index, word: &mut Word| {
                let expected = core::mem::replace(&mut word.seen, before[index]);
                expected != word.seen
            };
            // SAFETY: guaranteed by the caller.
            left = unsafe { keep(left, failed) };
        }
    }
}

/// Moves the wanted words to the front and returns them. The other words are done: their old values
/// go to the user.
///
/// # Safety
/// The results may be written.
unsafe fn keep(
    words: &mut [Word],
    mut wanted: impl FnMut(usize, &mut Word) -> bool,
) -> &mut [Word] {
    let mut kept = 0;
    for index in 0..words.len() {
        let mut word = words[index];
        if wanted(index, &mut word) {
            words[kept] = word;
            kept += 1;
        } else {
            // SAFETY: guaranteed by the caller.
            unsafe { word.found() };
        }
    }
    &mut words[..kept]
}
