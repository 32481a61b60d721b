//! Simple parts for a transport: a transfer of many runs as that many puts or gets, and bounce
//! buffers of heap memory. Not for transports that can gather runs or have registered memory.

use core::ops::Range;
use fompi_base::error::Result;
use fompi_fabric::Way;
use fompi_fabric::remote::{BOUNCE_BYTES, BounceBuffer, Bytes, Remote, Runs};

/// Runs that are each a put or a get.
pub struct Each<'a, B> {
    peer: &'a B,
    within: Remote,
    way: Way,
    done: Result<()>,
}

impl<'a, B: Bytes> Each<'a, B> {
    /// Returns a transfer without runs, for [`Bytes::runs`].
    pub fn new(peer: &'a B, within: Remote, way: Way) -> Each<'a, B> {
        Each { peer, within, way, done: Ok(()) }
    }
}

impl<B: Bytes> Runs for Each<'_, B> {
    unsafe fn push(&mut self, here: *mut u8, there: u64, bytes: u64) {
        let there = Remote { at: there, ..self.within };
        if self.done.is_ok() {
            // SAFETY: guaranteed by the caller.
            self.done = unsafe {
                match self.way {
                    Way::Put => self.peer.put(there, here, bytes),
                    Way::Get => self.peer.get(here, there, bytes),
                }
            };
        }
    }

    unsafe fn finish(self) -> Result<()> {
        self.done
    }
}

#[repr(align(4096))]
struct Pages([u8; BOUNCE_BYTES]);

/// A bounce buffer of heap memory, for a transport whose `put` copies the bytes before it returns.
pub struct Copied<'a, B> {
    peer: &'a B,
    pages: Box<Pages>,
}

impl<'a, B: Bytes> Copied<'a, B> {
    /// Returns a bounce buffer, for
    /// [`Network::bounce_buffer`](fompi_fabric::remote::Network::bounce_buffer).
    pub fn new(peer: &'a B) -> Copied<'a, B> {
        Copied { peer, pages: Box::new(Pages([0; BOUNCE_BYTES])) }
    }
}

impl<B: Bytes> BounceBuffer for Copied<'_, B> {
    fn at(&self) -> *mut u8 {
        self.pages.0.as_ptr().cast_mut()
    }

    fn read(&mut self, zero: Remote, part: Range<usize>) -> Result<()> {
        let to = self.pages.0[part.clone()].as_mut_ptr();
        // SAFETY: a part of the buffer, which no code reads before `arrived`.
        unsafe { self.peer.get(to, zero.offset(part.start as i64), part.len() as u64) }
    }

    fn arrived(&mut self) -> Result<()> {
        self.peer.flush_local()
    }

    fn write(self, zero: Remote, parts: &[Range<usize>]) -> Result<()> {
        parts.iter().try_for_each(|part| {
            let (to, from) = (zero.offset(part.start as i64), &self.pages.0[part.clone()]);
            // SAFETY: a part of the buffer, which the transport copies at once.
            unsafe { self.peer.put(to, from.as_ptr(), from.len() as u64) }
        })
    }
}
