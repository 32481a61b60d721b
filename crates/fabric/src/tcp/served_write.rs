//! A WRITE that a target carries out, as its bytes arrive: the first of them come with the request,
//! and the rest of a long WRITE is received into its place. Each part is checked against the key
//! again, because the memory may have been given back since the part before.

use core::ptr;
use std::os::fd::BorrowedFd;

use super::exposures::ExposedMemory;
use super::frames::{AnswerStatus, GUARDED_BYTES_MAX, TcpRequest};
use super::page_probes::PageAccess;
use super::stream_calls::{is_empty, piece, receive, would_wait};
use crate::number::Number;
use crate::word_copies;

/// Longest WRITE that is carried out at once and by words, and longest accumulate that is carried
/// out at once.
pub const SMALL_BYTES: u64 = 8 << 10;
const _: () = assert!(GUARDED_BYTES_MAX <= SMALL_BYTES, "a WRITE that is skipped has arrived");
/// Bytes that are received behind a long WRITE: another one mostly follows.
pub const BEHIND_LONG_BYTES: usize = 4 << 10;
/// Bytes of a long WRITE or READ that are moved at once.
pub const MOVED_BYTES_MAX: u64 = 256 << 10;

/// A WRITE whose bytes arrive.
pub struct ServedWrite {
    key: u32,
    at: u64,
    left: u64,
    /// whether the origin wants an answer
    pub answered: bool,
}

/// What a part of a WRITE says about the stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WriteStep {
    /// it has ended
    End,
    /// more may have arrived
    Filled,
    /// nothing more has arrived
    Part,
}

impl ServedWrite {
    /// Writes the bytes that have come with the request.
    #[inline]
    pub fn begin(
        memory: &ExposedMemory<'_>,
        request: &TcpRequest,
        data: &[u8],
    ) -> Result<ServedWrite, AnswerStatus> {
        let TcpRequest { answered, key, at, first, .. } = *request;
        let came = data.len().to_u64();
        if came < first {
            memory.check(key, at, first, PageAccess::BySystem)?;
        }
        memory.check(key, at, came, PageAccess::Store)?;
        let to = ptr::with_exposed_provenance_mut(at.to_usize());
        // SAFETY: exposed memory, which stays so while the table is locked; what the program owns
        // was probed.
        unsafe {
            match first > SMALL_BYTES {
                true => ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()),
                false => word_copies::store(to, data),
            }
        }
        Ok(ServedWrite { key, at: at + came, left: first - came, answered })
    }

    /// Whether all bytes have arrived.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Number of bytes that have not arrived.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Receives a part of the rest into its place, and behind its end what follows into `behind`.
    /// Returns also how many bytes followed.
    pub fn receive(
        &mut self,
        memory: &ExposedMemory<'_>,
        stream: BorrowedFd<'_>,
        behind: &mut [u8],
    ) -> Result<(WriteStep, usize), AnswerStatus> {
        memory.check(self.key, self.at, self.left, PageAccess::BySystem)?;
        let wanted = self.left.min(MOVED_BYTES_MAX).to_usize();
        let room = if wanted.to_u64() == self.left { behind.len() } else { 0 };
        let at = ptr::with_exposed_provenance::<u8>(self.at.to_usize());
        let pieces = [piece(at, wanted), piece(behind.as_mut_ptr(), room)];
        // SAFETY: exposed memory, which stays so while the table is locked, and the caller's bytes.
        let came = match unsafe { receive(stream, &pieces) } {
            Ok(0) => return Ok((WriteStep::End, 0)),
            Ok(came) => came,
            Err(error) if is_empty(&error) => return Ok((WriteStep::Part, 0)),
            // More may have arrived.
            Err(error) if would_wait(&error) => return Ok((WriteStep::Filled, 0)),
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                return Err(AnswerStatus::NoPermission);
            }
            Err(_) => return Ok((WriteStep::End, 0)),
        };
        let placed = came.min(wanted).to_u64();
        (self.at, self.left) = (self.at + placed, self.left - placed);
        // A call may also stop ahead of a page that the program has taken away, which the next one
        // reports.
        let stopped = self.left > 0 && memory.is_of_program(self.key);
        let is_filled = came == wanted + room || stopped;
        let step = if is_filled { WriteStep::Filled } else { WriteStep::Part };
        Ok((step, came.saturating_sub(wanted)))
    }
}
