//! Tables that the processes of a node share: the leader takes the memory from its heap and fills
//! it, the others map it. Nobody changes it afterwards. Behind a table is room for the beginning of
//! [notes](super::notes), which grow elsewhere.

use super::notes::{Notes, Root};
use super::said::OTHERS;
use crate::error::Result;
use crate::memory::heap::{self, Lease};
use crate::memory::{Place, View};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::sys::segment::Name;
use core::marker::PhantomData;

/// A table of plain data.
pub struct Shared<T> {
    base: *const T,
    length: u32,
    _view: View,
    _of: PhantomData<T>,
}

// SAFETY: memory that nobody changes as long as it is there.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: likewise.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// Shares `items`, as many as `length`, which the first rank of `near` alone gives; all of them
    /// call. If it cannot, none can.
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
            // The first rank has told why.
            None if place == [0; 6] => return Err(OTHERS),
            None => View::of(&decode(&place))?,
        };
        Ok(Shared { base: view.base().cast(), length, _view: view, _of: PhantomData })
    }

    fn of(items: Vec<T>) -> Result<Lease> {
        let root = root_offset::<T>(items.len());
        let lease = heap::take((root + size_of::<Root>()) as u64, 64)?;
        let base = lease.base().cast::<T>();
        // SAFETY: the lease has room for so many items, and is aligned for any of them.
        unsafe { core::ptr::copy_nonoverlapping(items.as_ptr(), base, items.len()) };
        // SAFETY: it has room for the root behind them.
        unsafe { lease.base().add(root).write_bytes(0, size_of::<Root>()) };
        Ok(lease)
    }

    /// The notes that begin behind the table; once.
    ///
    /// # Safety
    /// They are not used when the table is gone. Any bits of a `U` are a value.
    pub unsafe fn notes<U: Copy>(&self) -> Notes<U> {
        let root = self.base.cast::<u8>().wrapping_add(root_offset::<T>(self.length as usize));
        // SAFETY: zeroed by `of`, and the caller keeps the table.
        unsafe { Notes::at(root.cast()) }
    }

    /// Item number `index`.
    #[inline]
    pub fn at(&self, index: u32) -> T {
        assert!(index < self.length);
        // SAFETY: inside of the table, which is not changed any more.
        unsafe { self.base.add(index as usize).read() }
    }
}

/// Where notes begin behind so many items.
fn root_offset<T>(length: usize) -> usize {
    (length * size_of::<T>()).next_multiple_of(align_of::<Root>())
}

fn encode(place: &Place) -> [u64; 6] {
    let [pid, fd, device, inode, bytes] = place.name.to_words();
    [pid, fd, device, inode, bytes, place.offset]
}

fn decode(words: &[u64; 6]) -> Place {
    let [name @ .., offset] = *words;
    Place { name: Name::from_words(&name), offset }
}
