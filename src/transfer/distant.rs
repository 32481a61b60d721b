//! Accumulates on windows over many nodes. Integers of eight bytes at multiples of eight are words
//! of the device: each is changed by its atomic operations alone, by ranks of the target's own node
//! too (`words`). All other elements are read, combined and written back under the target's
//! accumulate lock, and so are all elements by who is alone (`blocks`). The type and the address
//! decide, as everywhere (docs/decisions/0004).

use super::acc::Acc;
use super::blocks::Blocks;
use super::combine::Run;
use super::words::Words;
use crate::datatype::basic::{Basic, Kind, Op};
use crate::error::Result;
use crate::fabric::Fetch;
use crate::window::wide::address::Distant;

/// Whether elements of this kind at this address of the target are words of the device.
pub fn is_word(basic: Basic, at: u64) -> bool {
    let whole = matches!(basic.kind(), Kind::Integer | Kind::MultiLanguage | Kind::Logical);
    whole && basic.size() == size_of::<u64>() && at.is_multiple_of(size_of::<u64>() as u64)
}

/// MPI_Compare_and_swap of a word, behind what was sent before: accumulates of one origin on one
/// element happen in their order (MPI-4.1 §12.7.2). Returns what it held before.
pub fn compare_and_swap(word: Distant<'_>, expect: u64, new: u64) -> Result<u64> {
    word.peer.order();
    word.peer.fetch(word.at, Fetch::CompareSwap { expect, new })
}

/// An accumulate of many runs.
pub struct Distantly<'a> {
    words: Words<'a>,
    others: Blocks<'a>,
    /// words are like others
    alone: bool,
}

impl<'a> Distantly<'a> {
    /// No runs yet. Without a lock the caller is alone.
    pub fn new(target: Distant<'a>, op: Op, lock: Option<Acc<'a>>) -> Distantly<'a> {
        let alone = lock.is_none();
        Distantly { words: Words::new(target, op), others: Blocks::new(target, op, lock), alone }
    }

    /// Adds a run.
    ///
    /// # Safety
    /// As for [`super::combine::Combine::push`].
    pub unsafe fn push(&mut self, run: Run) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match !self.alone && is_word(run.basic, run.there) {
                true => self.words.push(run),
                false => self.others.push(run),
            }
        }
    }

    /// Does the rest, also if something failed before.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn done(&mut self, before: Result<()>) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            let done = before.and_then(|()| self.words.finish());
            self.others.done(done)
        }
    }
}
