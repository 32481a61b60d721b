//! Accumulates on windows over many nodes whose targets do not carry them out (those that do are in
//! `target_acc`). Integers of eight bytes at multiples of eight are words of the device: only its
//! atomic operations change them, also for ranks of the target's own node (`word_acc`). All other
//! elements are read, combined and written back under the target's accumulate lock; so are all
//! elements if this process is alone at the target (`block_acc`). A call on several words holds
//! that lock, too, and a call on a single word reads it after its operation. The type, the address
//! and the number of elements decide, as everywhere (docs/decisions/0004).

use super::acc::{AccLock, LockCheck};
use super::acc_run::{AccRun, Guard};
use super::block_acc::BlockAcc;
use super::word_acc::WordAcc;
use crate::datatype::basic::{Basic, Kind};
use crate::datatype::reduce::{self, Op};
use crate::error::Result;
use crate::fabric::Fetch;
use crate::fabric::location::{Distant, Unmapped};
use crate::fabric::remote::{AtTarget, Bytes, Network};
use crate::number::Number;
use crate::window::LocalWindow;
use core::ptr;

/// Whether elements of this kind at this address of the target are words of the device.
pub fn is_word(basic: Basic, at: u64) -> bool {
    let whole = matches!(basic.kind(), Kind::Integer | Kind::MultiLanguage | Kind::Logical);
    whole && basic.size() == size_of::<u64>() && at.is_multiple_of(size_of::<u64>().to_u64())
}

/// Whether all ranks of a window over several nodes change elements of this kind at this address of
/// a target by one atomic operation: of the target's processor if targets carry out accumulates,
/// otherwise of the device.
pub fn is_changed_at_once(node: &LocalWindow, basic: Basic, at: u64) -> bool {
    match node.accumulates_at_targets() {
        true => !reduce::needs_lock(basic, ptr::without_provenance(at.to_usize())),
        false => is_word(basic, at),
    }
}

/// MPI_Compare_and_swap of a word of `width` bytes, after all requests that were sent before:
/// accumulates of one origin on one element happen in their order (MPI-4.1 §12.7.2). Where the
/// target does not carry it out, this waits for the result.
///
/// # Safety
/// The word is in the window. The result may be written, until a call completes the operation.
pub unsafe fn compare_and_swap(
    word: Distant<'_>,
    check: LockCheck<'_>,
    width: u8,
    (expect, new): (u64, u64),
    result: *mut u8,
) -> Result<()> {
    if let Some(to) = word.peer.at_target() {
        // SAFETY: the caller's duty; all ranks change the word by one atomic operation.
        unsafe { to.compare_and_swap((word.at, width), (expect, new), result) }?;
        check.end_later(true);
        return Ok(());
    }
    word.peer.order();
    let swap = Fetch::CompareSwap { expect, new };
    let (before, lock) = word.peer.fetch_and_read(word.at, swap, check.lock())?;
    check.end(lock)?;
    // SAFETY: the caller guarantees the result.
    unsafe { ptr::copy_nonoverlapping(before.to_le_bytes().as_ptr(), result, width.into()) };
    Ok(())
}

/// An accumulate of many runs.
pub struct DistantAcc<'a> {
    words: WordAcc<'a>,
    /// all elements that are no words; has the lock
    others: BlockAcc<'a>,
    target: Distant<'a>,
    guard: Guard,
}

impl<'a> DistantAcc<'a> {
    /// Starts without runs. `lock` is given if the guard says that it is not held.
    pub fn new(
        target: Distant<'a>,
        op: Op,
        guard: Guard,
        lock: Option<AccLock<'a>>,
    ) -> DistantAcc<'a> {
        let (words, others) = (WordAcc::new(target, op), BlockAcc::new(target, op, lock));
        DistantAcc { words, others, target, guard }
    }

    /// Adds a run.
    ///
    /// # Safety
    /// As for [`super::combine::UnmappedAcc::push`].
    pub unsafe fn push(&mut self, run: AccRun) -> Result<()> {
        if self.guard == Guard::Alone || !is_word(run.basic, run.there) {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.others.push(run) };
        }
        if self.guard != Guard::Single {
            self.others.reserve();
        }
        match (&mut self.others.lock, self.guard) {
            (Some(lock), Guard::Single) => self.words.check = Some(lock.check()),
            (Some(lock), _) => lock.take(Unmapped::Distant(self.target))?,
            (None, _) => {}
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.words.push(run) }
    }

    /// Carries out the pending runs, also if something failed before.
    ///
    /// # Safety
    /// As for `push`.
    pub unsafe fn done(&mut self, before: Result<()>) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let done = before.and_then(|()| self.words.finish());
            self.others.done(done)
        }
    }
}
