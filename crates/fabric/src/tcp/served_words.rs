//! Changes of single words that a target carries out, by atomic instructions of its processor.

use core::ptr;

use super::exposures::ExposedMemory;
use super::frames::{AnswerStatus, Detail, RequestKind, TcpRequest};
use super::page_probes::PageAccess;
use crate::datatype::basic::Basic;
use crate::datatype::reduce;
use crate::number::Number;
use crate::shm::doorbell;
use crate::sync::{AtomicU64, Ordering, fence_after_rmw};
use crate::sys::futex;

/// Returns an exposed word of `width` bytes.
pub fn word(
    memory: &ExposedMemory<'_>,
    (key, at): (u32, u64),
    width: u8,
) -> Result<*mut u8, AnswerStatus> {
    if !at.is_multiple_of(width.into()) {
        return Err(AnswerStatus::Unaligned);
    }
    memory.check(key, at, width.into(), PageAccess::Store)?;
    Ok(ptr::with_exposed_provenance_mut(at.to_usize()))
}

/// Returns the bytes of the word that a request changes, and so of its answer.
pub fn width(request: &TcpRequest) -> u8 {
    if let Detail::Width(bytes) = request.detail { bytes } else { 8 }
}

/// Adds to a word, or compares and swaps it, and returns what it held before.
pub fn change(memory: &ExposedMemory<'_>, request: &TcpRequest) -> Result<u64, AnswerStatus> {
    if request.kind != RequestKind::Add {
        return swap(memory, request);
    }
    let place = word(memory, (request.key, request.at), 8)?;
    // AcqRel: what the origin sent before is visible to a rank that sees the change, and the change
    // comes after what made the word what it was.
    // SAFETY: exposed memory, which stays so while the table is locked; aligned.
    Ok(unsafe { &*place.cast::<AtomicU64>() }.fetch_add(request.first, Ordering::AcqRel))
}

/// Compares and swaps a word, and returns what it held before.
pub fn swap(memory: &ExposedMemory<'_>, request: &TcpRequest) -> Result<u64, AnswerStatus> {
    let TcpRequest { key, at, first, second, .. } = *request;
    let width = width(request);
    let place = word(memory, (key, at), width)?;
    let basic = match width {
        1 => Basic::U8,
        2 => Basic::U16,
        4 => Basic::U32,
        _ => Basic::U64,
    };
    let mut old = 0u64;
    let (expect, new) = (first.to_ne_bytes(), second.to_ne_bytes());
    // SAFETY: the caller guarantees the element; the others are words of this function.
    unsafe {
        let old = (&raw mut old).cast();
        reduce::compare_and_swap(basic, place, expect.as_ptr(), new.as_ptr(), old);
    }
    // The requests behind it see what the lock that it has taken guards.
    fence_after_rmw();
    Ok(old)
}

/// Adds to a word, and wakes the threads that sleep on a doorbell.
pub fn add_and_ring(memory: &ExposedMemory<'_>, request: &TcpRequest) -> Result<(), AnswerStatus> {
    let TcpRequest { key, at, first, second, .. } = *request;
    let (word, bell) = (word(memory, (key, at), 8)?, word(memory, (key, second), 8)?);
    // SAFETY: exposed memory, which stays so while the table is locked; aligned.
    let (word, bell) = unsafe { (&*word.cast::<AtomicU64>(), doorbell::in_word(&*bell.cast())) };
    doorbell::add_and_ring(word, first, bell, futex::wake);
    Ok(())
}
