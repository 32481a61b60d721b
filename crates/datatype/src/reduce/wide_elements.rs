//! Many elements at once, for the holder of the target's accumulate lock. Calls on a single element
//! do not take that lock, and one that read the lock earlier may still be changing its word
//! (`epoch::lock::atomic_calls`). So this code must not lose a change of such a call, and such a
//! call must not see a partly changed word. Each aligned word of eight bytes is changed by one
//! atomic instruction, whatever the type of the elements inside of it. Where the processor has a
//! compare-exchange of sixteen bytes, one instruction changes two words; it is locked as the others
//! are, and costs less than two of them.
//!
//! On paper, for each [`WORDS`] words: the loads, the plain loop of the op, which is a vector loop,
//! and a compare-exchange for each word, or each two, that change; for MPI_REPLACE a store each.

use super::accumulate_exclusive;
use super::element::{Element, ReduceCall, Word};
use super::ops::Op;
#[cfg(target_arch = "x86_64")]
use super::processor::uses_cmpxchg16b;
use crate::basic::Basic;
#[cfg(target_arch = "x86_64")]
use crate::sync::compare_exchange_pair;
use core::ops::Range;
use core::ptr;

/// Bytes of a word.
const BYTES: usize = size_of::<u64>();
/// Words that are combined at once: those of a short call, and of any.
const FEW: usize = 9;
const WORDS: usize = 64;

/// A piece of the target: some words of it, and which of their bytes belong to the call.
struct Piece<const N: usize> {
    /// where the first word is
    at: *mut u8,
    part: Range<usize>,
    old: [u64; N],
    new: [u64; N],
}

/// Applies `op` to elements whose extents divide that of a word, at a multiple of their own.
///
/// # Safety
/// As for [`super::accumulate`], by the holder of the target's accumulate lock; in place of whole
/// elements, others change aligned words.
pub unsafe fn apply(op: Op, basic: Basic, call: &ReduceCall) {
    let extent = basic.extent();
    debug_assert!(extent <= BYTES && call.target.addr().is_multiple_of(extent));
    let bytes = call.count * extent;
    // SAFETY: guaranteed by the caller.
    unsafe {
        match bytes <= (FEW - 1) * BYTES {
            true => in_pieces::<FEW>(op, basic, call, bytes),
            false => in_pieces::<WORDS>(op, basic, call, bytes),
        }
    }
}

/// # Safety
/// As for [`apply`].
unsafe fn in_pieces<const N: usize>(op: Op, basic: Basic, call: &ReduceCall, bytes: usize) {
    let ReduceCall { target, origin, result, .. } = *call;
    let mut piece = Piece::<N> { at: target, part: 0..0, old: [0; N], new: [0; N] };
    let mut done = 0;
    while done < bytes {
        let at = target.wrapping_add(done);
        let first = at.addr() % BYTES;
        let end = (first + bytes - done).min(N * BYTES);
        (piece.at, piece.part) = (at.wrapping_sub(first), first..end);
        let origin = origin.wrapping_add(done);
        // SAFETY: the caller guarantees the buffers; the words are those around the elements.
        unsafe {
            piece.change(op, basic, origin, result.is_some());
            if let Some(result) = result {
                let old = piece.old.as_ptr().cast::<u8>().add(first);
                ptr::copy_nonoverlapping(old, result.add(done), end - first);
            }
        }
        done += end - first;
    }
}

impl<const N: usize> Piece<N> {
    /// Changes the words, one after the other, and keeps their old values.
    ///
    /// # Safety
    /// As for [`apply`].
    unsafe fn change(&mut self, op: Op, basic: Basic, origin: *const u8, fetches: bool) {
        let words = self.part.end.div_ceil(BYTES);
        let replaced = if op == Op::Replace { self.whole() } else { 0..0 };
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.change_some(op, basic, origin, 0..replaced.start);
            self.replace_whole(origin, replaced.clone(), fetches);
            self.change_some(op, basic, origin, replaced.end..words);
        }
    }

    /// Replaces words that belong to the call as a whole: they need not be loaded.
    ///
    /// # Safety
    /// As for [`apply`].
    unsafe fn replace_whole(&mut self, origin: *const u8, words: Range<usize>, fetches: bool) {
        let origin = origin.wrapping_sub(self.part.start);
        for index in words {
            // SAFETY: an aligned word of the target, and its operand.
            unsafe {
                let at = self.at.add(index * BYTES);
                let new = u64::read(origin.wrapping_add(index * BYTES));
                match fetches {
                    true => self.old[index] = u64::swap(at, new),
                    false => u64::store(at, new),
                }
            }
        }
    }

    /// Changes these words.
    ///
    /// # Safety
    /// As for [`apply`].
    #[inline(always)]
    unsafe fn change_some(&mut self, op: Op, basic: Basic, origin: *const u8, words: Range<usize>) {
        if words.is_empty() {
            return;
        }
        let at = self.at.wrapping_add(words.start * BYTES);
        let old = &mut self.old[words.clone()];
        for (index, old) in old.iter_mut().enumerate() {
            // SAFETY: an aligned word around elements of the target.
            *old = unsafe { u64::load(at.wrapping_add(index * BYTES)) };
        }
        if op == Op::NoOp {
            return;
        }
        self.new[words.clone()].copy_from_slice(old);
        let bytes = words.start * BYTES..words.end * BYTES;
        // SAFETY: the caller's operands; the words are copies, or around elements of the target.
        unsafe {
            self.combine(op, basic, origin, bytes);
            self.exchange_all(op, basic, origin, words);
        }
    }

    /// Exchanges these words for their new values.
    ///
    /// # Safety
    /// As for [`apply`].
    unsafe fn exchange_all(
        &mut self,
        op: Op,
        basic: Basic,
        origin: *const u8,
        words: Range<usize>,
    ) {
        #[cfg(target_arch = "x86_64")]
        if words.len() > 1 && uses_cmpxchg16b() {
            // SAFETY: the processor has the instruction; otherwise the caller's guarantees.
            return unsafe { self.exchange_pairs(op, basic, origin, words) };
        }
        for index in words {
            // SAFETY: guaranteed by the caller.
            unsafe { self.exchange(op, basic, origin, index) };
        }
    }

    /// Exchanges these words for their new values, two at a multiple of sixteen bytes at once.
    ///
    /// # Safety
    /// As for [`apply`], and the processor has the compare-exchange of sixteen bytes.
    #[cfg(target_arch = "x86_64")]
    unsafe fn exchange_pairs(
        &mut self,
        op: Op,
        basic: Basic,
        origin: *const u8,
        words: Range<usize>,
    ) {
        let odd = self.at.addr() / BYTES % 2;
        let first = words.start + (words.start + odd) % 2;
        let pairs = (words.end - first) / 2;
        // SAFETY: the caller's guarantees; a pair is aligned words around elements of the target.
        unsafe {
            if first > words.start {
                self.exchange(op, basic, origin, words.start);
            }
            for index in (first..first + 2 * pairs).step_by(2) {
                let at = self.at.add(index * BYTES).cast();
                let (old, new) = (pair(&self.old, index), pair(&self.new, index));
                if old != new && compare_exchange_pair(at, old, new) != old {
                    // Rare: a call on one element has changed a word since.
                    self.exchange(op, basic, origin, index);
                    self.exchange(op, basic, origin, index + 1);
                }
            }
            if first + 2 * pairs < words.end {
                self.exchange(op, basic, origin, words.end - 1);
            }
        }
    }

    /// Exchanges a word for its new value. If a call on one element has changed the word since, the
    /// new value is computed again from that. A word that keeps its value is not stored.
    ///
    /// # Safety
    /// As for [`apply`].
    unsafe fn exchange(&mut self, op: Op, basic: Basic, origin: *const u8, index: usize) {
        let bytes = index * BYTES..(index + 1) * BYTES;
        while self.new[index] != self.old[index] {
            // SAFETY: an aligned word around elements of the target.
            let changed = unsafe {
                u64::compare_exchange(self.at.add(bytes.start), self.old[index], self.new[index])
            };
            let Err(now) = changed else { return };
            (self.old[index], self.new[index]) = (now, now);
            // SAFETY: the caller's operands; the words are copies.
            unsafe { self.combine(op, basic, origin, bytes.clone()) };
        }
    }

    /// Combines those of some bytes of the copies that belong to the call with their operands.
    ///
    /// # Safety
    /// The operands may be read.
    unsafe fn combine(&mut self, op: Op, basic: Basic, origin: *const u8, bytes: Range<usize>) {
        let part = bytes.start.max(self.part.start)..bytes.end.min(self.part.end);
        let origin = origin.wrapping_add(part.start - self.part.start);
        let count = part.len() / basic.extent();
        // SAFETY: inside of the copies, which are ours, and the caller's operands.
        unsafe {
            let new = self.new.as_mut_ptr().cast::<u8>().add(part.start);
            accumulate_exclusive(op, basic, new, origin, None, count);
        }
    }

    /// The words all of whose bytes belong to the call.
    fn whole(&self) -> Range<usize> {
        let (first, end) = (self.part.start.div_ceil(BYTES), self.part.end / BYTES);
        if first < end { first..end } else { 0..0 }
    }
}

/// Two words, one after the other.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn pair<const N: usize>(words: &[u64; N], index: usize) -> [u64; 2] {
    [words[index], words[index + 1]]
}
