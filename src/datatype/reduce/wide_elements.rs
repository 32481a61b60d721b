//! Many elements at once, for the holder of the target's accumulate lock. Calls on a single element
//! do not take that lock, and one that read the lock earlier may still be changing its word
//! (`epoch::lock::whole`). So this code must not lose a change of such a call, and such a call must
//! not see a partly changed word. Each aligned word of eight bytes is changed by one atomic
//! instruction, whatever the type of the elements inside of it.
//!
//! On paper, for each [`WORDS`] words: the loads, the plain loop of the op, which is a vector loop,
//! and a compare-exchange for each word that changes.

use super::accumulate_exclusive;
use super::element::{ReduceCall, Word};
use super::ops::Op;
use crate::datatype::basic::Basic;
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
    // SAFETY: the caller's guarantees.
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
    let mut done = 0;
    while done < bytes {
        let at = target.wrapping_add(done);
        let first = at.addr() % BYTES;
        let end = (first + bytes - done).min(N * BYTES);
        let (old, new) = ([0; N], [0; N]);
        let mut piece = Piece::<N> { at: at.wrapping_sub(first), part: first..end, old, new };
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
        for index in 0..words {
            // A word that is replaced as a whole need not be loaded.
            if op != Op::Replace || !self.is_whole(index) {
                // SAFETY: an aligned word around elements of the target.
                self.old[index] = unsafe { u64::load(self.at.add(index * BYTES)) };
            }
        }
        if op == Op::NoOp {
            return;
        }
        self.new = self.old;
        // SAFETY: the caller's operands; the words are copies.
        unsafe { self.combine(op, basic, origin, self.part.clone()) };
        for index in 0..words {
            // SAFETY: as for the loads.
            unsafe {
                let at = self.at.add(index * BYTES);
                match op == Op::Replace && self.is_whole(index) {
                    true if fetches => self.old[index] = u64::swap(at, self.new[index]),
                    true => u64::store(at, self.new[index]),
                    false => self.exchange(op, basic, origin, index),
                }
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
            let part = bytes.start.max(self.part.start)..bytes.end.min(self.part.end);
            // SAFETY: the caller's operands; the words are copies.
            unsafe { self.combine(op, basic, origin, part) };
        }
    }

    /// Combines some bytes of the copies with the operands, which begin where the part does.
    ///
    /// # Safety
    /// The operands may be read.
    unsafe fn combine(&mut self, op: Op, basic: Basic, origin: *const u8, part: Range<usize>) {
        let origin = origin.wrapping_add(part.start - self.part.start);
        let count = part.len() / basic.extent();
        // SAFETY: inside of the copies, which are ours, and the caller's operands.
        unsafe {
            let new = self.new.as_mut_ptr().cast::<u8>().add(part.start);
            accumulate_exclusive(op, basic, new, origin, None, count);
        }
    }

    /// Whether all of a word belongs to the call.
    fn is_whole(&self, index: usize) -> bool {
        self.part.start <= index * BYTES && (index + 1) * BYTES <= self.part.end
    }
}
