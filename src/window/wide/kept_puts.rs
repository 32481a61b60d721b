//! Copies of small puts to a target whose lock is taken later. Not for puts that leave at once.

use crate::fabric::remote::{OPERANDS_COPIED_MAX, PutAt, Remote};
use crate::number::Number;
use core::ptr;

/// The most puts that are kept for a lock, and the most bytes of them.
const PUTS_MAX: usize = 256;
const BYTES_MAX: u64 = OPERANDS_COPIED_MAX;

/// The puts to a target whose lock is to be taken.
#[derive(Default)]
pub struct KeptPuts {
    /// where each put goes, and its bytes
    puts: Vec<(Remote, u64)>,
    /// the bytes of all puts, one after the other
    bytes: Vec<u8>,
}

impl KeptPuts {
    /// Keeps a put if there is room. Returns whether there is.
    ///
    /// # Safety
    /// `bytes` bytes at `from` can be read.
    pub unsafe fn keep(&mut self, to: Remote, from: *const u8, bytes: u64) -> bool {
        if self.puts.len() == PUTS_MAX || self.bytes.len().to_u64() + bytes > BYTES_MAX {
            return false;
        }
        let (end, count) = (self.bytes.len(), bytes.to_usize());
        self.bytes.reserve(count);
        // SAFETY: room for the bytes, and the caller guarantees those of the put.
        unsafe {
            ptr::copy_nonoverlapping(from, self.bytes.as_mut_ptr().add(end), count);
            self.bytes.set_len(end + count);
        }
        self.puts.push((to, bytes));
        true
    }

    /// Whether there is no put.
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty()
    }

    /// Returns the puts as the transport carries them out.
    pub fn requests(&self) -> Vec<PutAt> {
        let mut from = self.bytes.as_ptr();
        let request = |(to, bytes): &(Remote, u64)| {
            let put = PutAt { to: *to, from, bytes: *bytes };
            from = from.wrapping_add(bytes.to_usize());
            put
        };
        self.puts.iter().map(request).collect()
    }
}
