//! The answers that the target's end of a connection has to send, in parts.

use core::ptr;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use super::exposures::ExposedMemory;
use super::frames::{Answer, AnswerStatus};
use super::page_probes::PageAccess;
use super::stream_calls::{piece, send, would_wait};
use crate::number::Number;

/// Bytes of answers that are held before they are sent.
const ANSWERS_BYTES_MAX: usize = 256 << 10;
/// Parts that one system call sends: the beginning of an answer, its memory, and its end.
const PIECES: usize = 3;

/// The answers. Bytes are added to a last part of bytes, so of two adjacent parts one is memory.
#[derive(Default)]
pub struct AnswerQueue(VecDeque<AnswerPart>);

/// A part of an answer.
enum AnswerPart {
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

impl AnswerQueue {
    /// Bytes of memory that it keeps.
    #[cfg(test)]
    pub fn kept_bytes(&self) -> usize {
        self.0.capacity() * size_of::<AnswerPart>()
    }

    /// Whether nothing is to be sent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one system call can send another part.
    pub fn has_room(&self) -> bool {
        self.0.len() < PIECES
    }

    /// Whether so much is held that it has to be sent first: memory that a READ asked for is sent
    /// before the next request may change it.
    #[inline]
    pub fn is_full(&self) -> bool {
        match self.0.front() {
            Some(AnswerPart::Bytes(bytes, _)) => {
                bytes.len() >= ANSWERS_BYTES_MAX || self.0.len() > 1
            }
            Some(AnswerPart::Memory(_)) => true,
            None => false,
        }
    }

    /// Adds an answer, behind which `bytes` bytes follow.
    pub fn answer(&mut self, status: AnswerStatus, bytes: u32) {
        self.bytes().extend_from_slice(&Answer::new(status, bytes).bytes());
    }

    /// Returns the bytes at the end.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        if !matches!(self.0.back(), Some(AnswerPart::Bytes(..))) {
            self.0.push_back(AnswerPart::Bytes(Vec::new(), 0));
        }
        match self.0.back_mut() {
            Some(AnswerPart::Bytes(bytes, _)) => bytes,
            _ => unreachable!("it was added"),
        }
    }

    /// Adds memory.
    pub fn push_memory(&mut self, memory: AnswerMemory) {
        self.0.push_back(AnswerPart::Memory(memory));
    }

    /// Replaces memory by zeros.
    pub fn replace_memory(&mut self) {
        for part in &mut self.0 {
            if let AnswerPart::Memory(place) = part {
                *part = AnswerPart::Bytes(vec![0; place.left.to_usize()], 0);
            }
        }
    }

    /// Drops the last part.
    pub fn drop_last(&mut self) {
        self.0.pop_back();
    }

    /// Sends what the stream takes of the first parts.
    pub fn send(
        &mut self,
        stream: BorrowedFd<'_>,
        memory: &ExposedMemory<'_>,
    ) -> Result<(), Stopped> {
        let (mut pieces, mut count) = ([piece(ptr::null(), 0); PIECES], 0);
        for (place, part) in pieces.iter_mut().zip(&self.0) {
            *place = part.left(memory)?;
            count += 1;
        }
        // SAFETY: bytes of this connection, or exposed memory while the table is locked.
        let sent = unsafe { send(stream, &pieces[..count]) };
        sent.map(|sent| self.advance(sent)).map_err(|error| match error.raw_os_error() {
            _ if would_wait(&error) => Stopped::Wait,
            Some(libc::EFAULT) => Stopped::Refused(AnswerStatus::NoPermission),
            _ => Stopped::Ended,
        })
    }

    /// Removes bytes that were sent.
    fn advance(&mut self, mut sent: usize) {
        while let Some(part) = self.0.front_mut() {
            let (taken, is_done) = part.advance(sent);
            sent -= taken;
            if !is_done {
                return;
            }
            self.0.pop_front();
        }
    }
}

impl AnswerPart {
    /// Returns what is left to send. The memory stays exposed while the table is locked.
    fn left(&self, memory: &ExposedMemory<'_>) -> Result<libc::iovec, Stopped> {
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
    fn advance(&mut self, sent: usize) -> (usize, bool) {
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
