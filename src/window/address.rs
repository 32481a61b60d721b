//! From (rank, displacement, extent) to memory of the window. Every bounds check of the library is
//! here, and an [`Addr`] is proof that it was made.

use super::Node;
use crate::error::{Class, Error, Result};

/// Window memory of some rank, mapped here: so many bytes from `pointer` are inside of the window.
#[derive(Clone, Copy, Debug)]
pub struct Addr {
    pointer: *mut u8,
}

impl Addr {
    /// The first byte.
    #[inline]
    pub fn pointer(self) -> *mut u8 {
        self.pointer
    }
}

/// The bytes that a transfer touches, relative to the displacement.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// from the displacement to the first byte touched; negative for types with such a lower bound
    pub first: i64,
    /// from there to behind the last byte touched
    pub bytes: u64,
}

impl Node {
    /// Where `reach` at displacement `disp` of `rank` is (MPI-4.1 §12.3.1: the address is
    /// `window_base + target_disp × disp_unit`, with the target's own unit).
    ///
    /// # Errors
    /// MPI_ERR_DISP if `disp` is negative, MPI_ERR_RMA_RANGE if a byte is outside of what `rank`
    /// exposes.
    #[inline]
    pub fn address(&self, rank: u32, disp: i64, reach: Reach) -> Result<Addr> {
        debug_assert!(rank < self.size);
        let exposed = self.words.cells().descriptor(rank);
        let start = (disp as u64).checked_mul(exposed.disp_unit);
        let first = start.and_then(|start| start.checked_add_signed(reach.first));
        match first {
            Some(first)
                if disp >= 0 && first <= exposed.bytes && reach.bytes <= exposed.bytes - first =>
            {
                let offset = (exposed.offset + first) as usize;
                debug_assert!(offset + reach.bytes as usize <= self.mapping.bytes());
                // SAFETY: inside of the rank's part of the data segment, as was just checked.
                Ok(Addr { pointer: unsafe { self.data.add(offset) } })
            }
            _ => Err(self.outside(rank, disp, reach)),
        }
    }

    /// The same for bytes that begin at the displacement; `None` if any is outside.
    #[inline(always)]
    pub fn address_within(&self, rank: u32, disp: i64, bytes: u64) -> Option<*mut u8> {
        let exposed = self.words.cells().descriptor(rank);
        // A negative displacement is a huge one here, and huge times the unit is too much.
        let first = (disp as u64).checked_mul(exposed.disp_unit)?;
        if first > exposed.bytes || bytes > exposed.bytes - first {
            return None;
        }
        // SAFETY: inside of the rank's part of the data segment, as was just checked.
        Some(unsafe { self.data.add((exposed.offset + first) as usize) })
    }

    #[cold]
    fn outside(&self, rank: u32, disp: i64, reach: Reach) -> Error {
        if disp < 0 {
            return Error::Argument(Class::Disp, "target displacement", disp);
        }
        let exposed = self.words.cells().descriptor(rank);
        let first = i128::from(disp) * i128::from(exposed.disp_unit) + i128::from(reach.first);
        let end = first + i128::from(reach.bytes);
        Error::OutsideWindow { rank, first, end, bytes: exposed.bytes }
    }

    /// What `rank` exposes, as seen from here: address, bytes, displacement unit. Nothing has no
    /// address.
    pub fn part(&self, rank: u32) -> (*mut u8, u64, u64) {
        let exposed = self.words.cells().descriptor(rank);
        if exposed.bytes == 0 {
            return (core::ptr::null_mut(), 0, exposed.disp_unit);
        }
        // SAFETY: each rank's part begins inside of the data segment, or at its end if empty.
        let base = unsafe { self.data.add(exposed.offset as usize) };
        (base, exposed.bytes, exposed.disp_unit)
    }

    /// The first rank that exposes anything, for MPI_Win_shared_query of MPI_PROC_NULL.
    pub fn first_with_memory(&self) -> Option<u32> {
        (0..self.size).find(|rank| self.words.cells().descriptor(*rank).bytes > 0)
    }

    /// A rank that the user gave as a target.
    #[inline]
    pub fn target(&self, rank: i32) -> Result<u32> {
        if (rank as u32) < self.size {
            return Ok(rank as u32);
        }
        Err(Error::TargetRank { rank: i64::from(rank), size: self.size })
    }
}
