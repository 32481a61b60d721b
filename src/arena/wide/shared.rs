//! Constant tables that the processes of a node share. The leader allocates the memory from its
//! heap and fills it, the other processes map it, and no process changes it afterwards. A table is
//! followed by the root of [notes](super::notes), which grow elsewhere.

use super::notes::{Notes, Root};
use crate::error::Result;
use crate::memory::heap::{self, HeapRange};
use crate::memory::{HeapPlace, HeapView};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::number::Number;
use crate::report::collective_outcome::CAUSE_ELSEWHERE;
use crate::sys::segment::Name;
use core::marker::PhantomData;

/// A table of plain data.
pub struct Shared<T> {
    base: *const T,
    length: u32,
    _view: HeapView,
    _of: PhantomData<T>,
}

// SAFETY: no process changes the memory as long as it is mapped.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// Shares a table of `length` items among the ranks of `near`. Collective; only rank 0 of
    /// `near` gives `items`. If rank 0 fails, all ranks fail.
    pub fn make(
        host: &Host,
        near: Comm,
        length: u32,
        items: Option<Result<Vec<T>>>,
    ) -> Result<Shared<T>> {
        let own = items.map(|items| Shared::of(items?));
        let mut place = match &own {
            Some(Ok(lease)) => encode(&lease.place()),
            _ => [0; 6],
        };
        near.broadcast(host, &mut place)?;
        let view = match own {
            Some(own) => own?.into(),
            // Rank 0 reports the cause.
            None if place == [0; 6] => return Err(CAUSE_ELSEWHERE),
            None => {
                let bytes = root_offset::<T>(length.to_usize()) + size_of::<Root>();
                HeapView::of(&decode(&place), bytes.to_u64())?
            }
        };
        Ok(Shared { base: view.base().cast(), length, _view: view, _of: PhantomData })
    }

    fn of(items: Vec<T>) -> Result<HeapRange> {
        let root = root_offset::<T>(items.len());
        let lease = heap::take((root + size_of::<Root>()).to_u64(), 64)?;
        let base = lease.base().cast::<T>();
        // SAFETY: the lease is large enough for all items, and its alignment of 64 bytes suffices
        // for them.
        unsafe { core::ptr::copy_nonoverlapping(items.as_ptr(), base, items.len()) };
        // SAFETY: the lease is large enough for the root behind the items.
        unsafe { lease.base().add(root).write_bytes(0, size_of::<Root>()) };
        Ok(lease)
    }

    /// Returns the notes whose root lies behind the table.
    ///
    /// # Safety
    /// The caller must call this once only and must not use the notes after the table is dropped.
    /// Every bit pattern must be a valid `U`.
    pub unsafe fn notes<U: Copy>(&self) -> Notes<U> {
        let root = self.base.cast::<u8>().wrapping_add(root_offset::<T>(self.length.to_usize()));
        // SAFETY: `of` has zeroed the root, and the caller keeps the table.
        unsafe { Notes::at(root.cast()) }
    }

    /// Returns the item number `index`.
    #[inline]
    pub fn at(&self, index: u32) -> T {
        assert!(index < self.length);
        // SAFETY: the item is inside the table, which no process changes any more.
        unsafe { self.base.add(index.to_usize()).read() }
    }
}

/// Returns the offset in bytes of the root of notes behind `length` items.
fn root_offset<T>(length: usize) -> usize {
    (length * size_of::<T>()).next_multiple_of(align_of::<Root>())
}

fn encode(place: &HeapPlace) -> [u64; 6] {
    let [pid_and_fd, device, inode, bytes, passer] = place.name.to_words();
    [pid_and_fd, device, inode, bytes, passer, place.offset]
}

fn decode(words: &[u64; 6]) -> HeapPlace {
    let [name @ .., offset] = *words;
    HeapPlace { name: Name::from_words(&name), offset }
}
