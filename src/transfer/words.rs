//! Accumulates on words of the device, many at once: all are asked for, then all answers are waited
//! for.
//!
//! On paper: a sum without a result is a request for each word, that nobody waits for, and one with
//! a result one wait for [`WORDS_MAX`] of them. MPI_NO_OP reads them, as messages. Any other
//! operation reads them, as messages too, and swaps each if it is still what was read: two waits,
//! and one more for all whom somebody else came between. What an operation leaves as it is needs no
//! request. Behind a single word the lock of the target is read, in the same waits.

use super::acc::Behind;
use super::combine::Run;
use super::unmapped::Unmapped;
use crate::datatype::basic::Op;
use crate::datatype::reduce;
use crate::error::Result;
use crate::fabric::verbs::{Remote, WORDS_MAX};
use crate::fabric::{Fetch, Way};
use crate::window::wide::address::Distant;
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::slice;

/// Runs that wait for one go.
const RUNS: usize = WORDS_MAX;

/// An accumulate of many runs of words.
pub struct Words<'a> {
    target: Distant<'a>,
    op: Op,
    /// the first `count` are there
    runs: [MaybeUninit<Run>; RUNS],
    count: usize,
    /// in all of them; at most [`WORDS_MAX`], but for MPI_NO_OP
    words: usize,
    /// how the call ends; `None`: it holds the lock
    pub behind: Option<Behind<'a>>,
    /// what the lock was behind what was sent last, if that was waited for
    lock: Cell<Option<u64>>,
}

/// A word, and what it has to do with.
#[derive(Clone, Copy)]
struct Word {
    run: Run,
    /// what it held
    seen: u64,
    /// what it is to hold
    new: u64,
}

impl Word {
    /// # Safety
    /// The run has an operand.
    unsafe fn operand(&self) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.run.origin.cast::<u64>().read_unaligned() }
    }

    /// # Safety
    /// The run has an operand.
    unsafe fn combined(&self, op: Op) -> u64 {
        let (mut new, Run { basic, origin, .. }) = (self.seen, self.run);
        let here = (&raw mut new).cast();
        // SAFETY: a word of ours, which is as large as an element, and the caller's operand.
        unsafe { reduce::accumulate_exclusive(op, basic, here, origin, None, 1) };
        new
    }

    /// Hands over what it held.
    ///
    /// # Safety
    /// The result may be written.
    unsafe fn found(&self) {
        if let Some(result) = self.run.result {
            // SAFETY: the caller's promise.
            unsafe { result.cast::<u64>().write_unaligned(self.seen) };
        }
    }
}

impl<'a> Words<'a> {
    /// No runs yet.
    pub fn new(target: Distant<'a>, op: Op) -> Words<'a> {
        let (runs, lock) = ([const { MaybeUninit::uninit() }; RUNS], Cell::new(None));
        Words { target, op, runs, count: 0, words: 0, behind: None, lock }
    }

    /// Adds a run of words.
    ///
    /// # Safety
    /// As for [`super::combine::Combine::push`].
    pub unsafe fn push(&mut self, run: Run) -> Result<()> {
        let mut rest = run;
        while rest.count > 0 {
            let room = if self.op == Op::NoOp { usize::MAX } else { WORDS_MAX - self.words };
            if self.count == RUNS || room == 0 {
                // SAFETY: the caller's promise.
                unsafe { self.finish()? };
                continue;
            }
            let (run, behind) = rest.split(rest.count.min(room));
            self.runs[self.count].write(run);
            self.count += 1;
            self.words += run.count;
            rest = behind;
        }
        Ok(())
    }

    fn runs(&self) -> &[Run] {
        // SAFETY: `push` has written the first `count`.
        unsafe { slice::from_raw_parts(self.runs.as_ptr().cast(), self.count) }
    }

    fn at(&self, there: u64) -> Remote {
        Remote { at: there, ..self.target.at }
    }

    /// Does what has not been done yet. Empty afterwards.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn finish(&mut self) -> Result<()> {
        let Some(first) = self.runs().first() else { return Ok(()) };
        let fetches = first.result.is_some();
        // SAFETY: the caller's promise.
        let done = unsafe {
            match self.op {
                Op::Sum if !fetches => self.post(),
                Op::NoOp => self.read(|_, run| run.result),
                _ => self.fetch(),
            }
        };
        (self.count, self.words) = (0, 0);
        match self.behind.take() {
            Some(behind) => done.and_then(|()| behind.end(self.lock.take())),
            None => done,
        }
    }

    /// Changes words, and waits for what they held before.
    fn fetch_all(
        &self,
        which: impl Fn(usize) -> (Remote, Fetch),
        before: &mut [u64],
    ) -> Result<()> {
        let (peer, Some(behind)) = (self.target.peer, self.behind) else {
            return self.target.peer.fetch_all(which, before);
        };
        debug_assert_eq!(before.len(), 1);
        let (at, op) = which(0);
        let (old, lock) = peer.fetch_and_read(at, op, behind.lock)?;
        before[0] = old;
        self.lock.set(Some(lock));
        Ok(())
    }

    /// Adds, and waits for nothing.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn post(&self) -> Result<()> {
        let mut words = [const { MaybeUninit::uninit() }; WORDS_MAX];
        let words = self.list(&mut words);
        self.target.peer.post_all(words.len(), |index| {
            let word = &words[index];
            // SAFETY: the caller's promise.
            (self.at(word.run.there), unsafe { word.operand() })
        })
    }

    /// Reads the words, each run to where `to` says, behind what was sent before: accumulates of
    /// one origin on one element happen in their order (MPI-4.1 §12.7.2).
    ///
    /// # Safety
    /// So much may be written there.
    unsafe fn read(&self, mut to: impl FnMut(usize, &Run) -> Option<*mut u8>) -> Result<()> {
        self.target.peer.order();
        let mut batch = Unmapped::Distant(self.target).runs(Way::Get);
        let mut before = 0;
        for run in self.runs() {
            if let Some(to) = to(before, run) {
                // SAFETY: the caller's promise.
                unsafe { batch.push(to, run.there, run.bytes()) };
            }
            before += run.count;
        }
        let Some(behind) = self.behind else {
            // SAFETY: likewise.
            return unsafe { batch.finish_here() };
        };
        // SAFETY: likewise.
        let sent = unsafe { batch.finish() };
        // READs are done in their order.
        let lock = self.target.peer.read(behind.lock);
        let came = self.target.peer.flush_local();
        self.lock.set(Some(sent.and(came).and(lock)?));
        Ok(())
    }

    /// The words of the runs, one by one.
    fn list<'w>(&self, words: &'w mut [MaybeUninit<Word>; WORDS_MAX]) -> &'w mut [Word] {
        let mut count = 0;
        for run in self.runs() {
            let mut rest = *run;
            while rest.count > 0 {
                let (run, behind) = rest.split(1);
                words[count].write(Word { run, seen: 0, new: 0 });
                count += 1;
                rest = behind;
            }
        }
        // SAFETY: the first `count` were written.
        unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), count) }
    }

    /// Any operation, or a sum with a result.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn fetch(&self) -> Result<()> {
        let mut words = [const { MaybeUninit::uninit() }; WORDS_MAX];
        let words = self.list(&mut words);
        let mut before = [0; WORDS_MAX];
        if self.op != Op::Sum {
            let first = before.as_mut_ptr();
            // SAFETY: there is room for all words.
            unsafe { self.read(|index, _| Some(first.wrapping_add(index).cast()))? };
            for (word, seen) in words.iter_mut().zip(before) {
                word.seen = seen;
            }
            // SAFETY: the caller's promise.
            return unsafe { self.change(words, &mut before) };
        }
        self.target.peer.order();
        let before = &mut before[..words.len()];
        let sum = |index: usize| {
            let word: &Word = &words[index];
            // SAFETY: the caller's promise.
            (self.at(word.run.there), Fetch::Add(unsafe { word.operand() }))
        };
        self.fetch_all(sum, before)?;
        for (word, seen) in words.iter_mut().zip(before) {
            word.seen = *seen;
            // SAFETY: the caller's promise.
            unsafe { word.found() };
        }
        Ok(())
    }

    /// Changes words that were read. Those that somebody else has changed since are tried again,
    /// all together, with what was found.
    ///
    /// # Safety
    /// As for `push`.
    unsafe fn change(&self, mut left: &mut [Word], before: &mut [u64; WORDS_MAX]) -> Result<()> {
        loop {
            let changes = |_, word: &mut Word| {
                // SAFETY: the caller's promise.
                word.new = unsafe { word.combined(self.op) };
                word.new != word.seen
            };
            // SAFETY: likewise.
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
            // SAFETY: likewise.
            left = unsafe { keep(left, failed) };
        }
    }
}

/// The words that are to be kept, moved to the front. The others are done: what they held goes to
/// the user.
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
            // SAFETY: the caller's promise.
            unsafe { word.found() };
        }
    }
    &mut words[..kept]
}
