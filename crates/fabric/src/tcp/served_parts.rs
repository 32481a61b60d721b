//! The parts of the answers that the target's end of a connection has to send.

use core::ptr;

use super::exposures::ExposedMemory;
use super::frames::AnswerStatus;
use super::page_probes::PageAccess;
use super::stream_calls::piece;
use crate::number::Number;

/// A part of an answer.
pub enum AnswerPart {
    /// bytes, and how many of them are sent
    Bytes(Vec<u8>, usize),
    /// exposed memory
    Memory(AnswerMemory),
}

/// Exposed memory that is sent from its place.
#[derive(Clone, Copy)]
pub struct AnswerMemory {
    /// key of the memory
    pub key: u32,
    /// its address
    pub at: u64,
    /// its length in bytes
    pub left: u64,
}

/// Why no answers were sent.
pub enum Stopped {
    /// the socket has no room
    Wait,
    /// the connection has ended
    Ended,
    /// memory of a READ cannot be read any more
    Refused(AnswerStatus),
}

impl AnswerPart {
    /// Returns what is left to send. The memory stays exposed while the table is locked.
    pub fn left(&self, memory: &ExposedMemory<'_>) -> Result<libc::iovec, Stopped> {
        match self {
            AnswerPart::Bytes(bytes, sent) => {
                Ok(piece(bytes[*sent..].as_ptr(), bytes.len() - *sent))
            }
            AnswerPart::Memory(AnswerMemory { key, at, left }) => {
                let checked = memory.check(*key, *at, *left, PageAccess::BySystem);
                checked.map_err(Stopped::Refused)?;
                Ok(piece(ptr::with_exposed_provenance(at.to_usize()), left.to_usize()))
            }
        }
    }

    /// Records that up to `sent` bytes were sent. Returns how many are of this part, and whether
    /// nothing of it is left.
    pub fn advance(&mut self, sent: usize) -> (usize, bool) {
        match self {
            AnswerPart::Bytes(bytes, before) => {
                let taken = sent.min(bytes.len() - *before);
                *before += taken;
                (taken, *before == bytes.len())
            }
            AnswerPart::Memory(place) => {
                let taken = sent.to_u64().min(place.left);
                (place.at, place.left) = (place.at + taken, place.left - taken);
                (taken.to_usize(), place.left == 0)
            }
        }
    }
}
