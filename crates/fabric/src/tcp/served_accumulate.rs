//! An accumulate that a target carries out, in pieces of whole elements as their operands arrive.
//! Each piece is checked against the key again, because the memory may have been given back since
//! the piece before. The processor's atomics change the elements, so it does not matter which
//! others change them (`docs/decisions/0004`). Nothing here waits, and nothing takes a lock: under
//! which protection the elements are is the origin's business.

use core::ptr;

use super::exposures::ExposedMemory;
use super::frames::{Answer, AnswerStatus, Detail, RequestKind, TcpRequest};
use super::page_probes::PageAccess;
use crate::datatype::reduce;
use crate::number::Number;
use crate::reduction::{Protection, Reduction};

/// Bytes of elements that are changed at once: a multiple of the bytes of any element.
const PIECE_BYTES_MAX: u64 = 64 << 10;

/// Carries out an accumulate on one element without protection and without a result, whose operand
/// has arrived: most accumulates are such. Returns whether this one is.
#[inline]
pub fn one_element(
    memory: &ExposedMemory<'_>,
    request: &TcpRequest,
    operand: &[u8],
) -> Result<bool, AnswerStatus> {
    let TcpRequest { kind, key, at, first, second, .. } = *request;
    let Detail::Reduction(what) = request.detail else { return Ok(false) };
    let is_whole = first == what.extent() && operand.len().to_u64() == first;
    let is_free = second == Protection::Atomic as u64 && what.fits(Protection::Atomic, at);
    if kind != RequestKind::Accumulate || !is_whole || !is_free {
        return Ok(false);
    }
    memory.check(key, at, first, PageAccess::Store)?;
    let target = ptr::with_exposed_provenance_mut::<u8>(at.to_usize());
    // SAFETY: the element is exposed, and stays so while the table is locked; what the program
    // owns was probed. The operand is as long.
    unsafe { reduce::accumulate(what.op(), what.basic(), target, operand.as_ptr(), None, 1) };
    Ok(true)
}

/// An accumulate that is not done yet.
pub struct ServedAccumulate {
    what: Reduction,
    protection: Protection,
    key: u32,
    at: u64,
    /// bytes of the elements that are not changed yet
    left: u64,
    /// whether a piece was carried out
    begun: bool,
    /// whether the origin wants the old elements
    pub fetches: bool,
    /// whether the origin wants an answer
    pub answered: bool,
}

impl ServedAccumulate {
    /// Checks the request of an accumulate, of whose operands `came` bytes are there: all elements,
    /// unless their one piece is checked next.
    #[inline]
    pub fn begin(
        memory: &ExposedMemory<'_>,
        request: &TcpRequest,
        came: usize,
    ) -> Result<ServedAccumulate, AnswerStatus> {
        let TcpRequest { answered, key, at, first: left, second, .. } = *request;
        let (Detail::Reduction(what), Some(protection)) =
            (request.detail, Protection::from_number(second))
        else {
            return Err(AnswerStatus::NoRequest);
        };
        if !what.fits(protection, at) {
            return Err(AnswerStatus::Unaligned);
        }
        if came.to_u64() < left {
            memory.check(key, at, left, PageAccess::BySystem)?;
        }
        let (begun, fetches) = (false, request.kind == RequestKind::FetchAccumulate);
        Ok(ServedAccumulate { what, protection, key, at, left, begun, fetches, answered })
    }

    /// Whether all elements are changed.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Bytes of operands that are not used yet.
    pub fn operands_left(&self) -> u64 {
        if self.what.has_operands() { self.left } else { 0 }
    }

    /// Whether `bytes` bytes of operands are enough to change an element.
    pub fn can_advance(&self, bytes: usize) -> bool {
        !self.what.has_operands() || bytes.to_u64() >= self.what.extent()
    }

    /// Changes the elements whose operands have arrived, as far as one piece goes. `answers` gets
    /// what they were before, as an answer or a partial one. Returns how many bytes of operands
    /// were used.
    #[inline]
    pub fn advance(
        &mut self,
        memory: &ExposedMemory<'_>,
        operands: &[u8],
        mut answers: Option<&mut Vec<u8>>,
    ) -> Result<usize, AnswerStatus> {
        let came = if self.what.has_operands() { operands.len().to_u64() } else { self.left };
        let bytes = self.what.whole(came.min(self.left).min(PIECE_BYTES_MAX));
        if bytes == 0 {
            return Ok(0);
        }
        let whole = !self.begun && bytes == self.left;
        let access = if self.what.has_operands() { PageAccess::Store } else { PageAccess::Load };
        memory.check(self.key, self.at, bytes, access)?;
        if let Some(answers) = &mut answers {
            let status = if whole { AnswerStatus::Done } else { AnswerStatus::Partial };
            answers.extend_from_slice(&Answer::new(status, bytes.low_u32()).bytes());
        }
        // SAFETY: the elements are exposed, and stay so while the table is locked; what the
        // program owns was probed. There are operands for all of them.
        unsafe { self.change(operands.as_ptr(), bytes, answers.as_deref_mut()) };
        (self.at, self.left, self.begun) = (self.at + bytes, self.left - bytes, true);
        if let (Some(answers), true, false) = (answers, self.is_done(), whole) {
            answers.extend_from_slice(&Answer::new(AnswerStatus::Done, 0).bytes());
        }
        Ok(if self.what.has_operands() { bytes.to_usize() } else { 0 })
    }

    /// Changes the next `bytes` bytes of elements.
    ///
    /// # Safety
    /// They may be read and written, and as many bytes of operands may be read, if there are
    /// operands.
    unsafe fn change(&self, operands: *const u8, bytes: u64, old: Option<&mut Vec<u8>>) {
        let target = ptr::with_exposed_provenance_mut::<u8>(self.at.to_usize());
        let (op, basic) = (self.what.op(), self.what.basic());
        let count = self.what.elements(bytes).to_usize();
        let result = old.map(|old| {
            let before = old.len();
            // Zeroed: the padding of an element is not written.
            old.resize(before + bytes.to_usize(), 0);
            old[before..].as_mut_ptr()
        });
        let combine = self.protection.combine();
        // SAFETY: the caller's duties. What other accumulates do meanwhile the origin guarantees.
        unsafe { combine(op, basic, target, operands, result, count) };
    }
}
