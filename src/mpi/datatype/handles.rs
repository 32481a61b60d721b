//! Lookup of layouts by the handles of their types, without a call of the host MPI. An attribute of
//! the type (`cache`) owns the layout; the entry here exists only as long as the attribute. When
//! the MPI frees a type it deletes the attribute first, and gives the handle to another type only
//! afterwards.
//!
//! A type in use is not freed, so its entry keeps its meaning while a call reads it. Other threads
//! may meanwhile make or forget an entry of another type at the same place. The version shows that:
//!
//! | version | meaning                            |
//! |---------|------------------------------------|
//! | even    | the entry is whole, or has no type |
//! | odd     | a thread changes the entry         |

use crate::datatype::type_map::Layout;
use crate::mpi::handle::Handle;
use crate::number::Number;
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
use core::ptr;
use parking_lot::Mutex;

/// Places of a table; a power of two. A program seldom has more types than a tenth of that.
const PLACES: usize = 1024;

/// The type of a place, in a cache line of its own.
#[repr(align(64))]
struct Entry {
    version: AtomicU64,
    /// 0 if there is none
    handle: AtomicUsize,
    layout: AtomicPtr<Layout>,
}

impl Entry {
    const fn none() -> Entry {
        Entry {
            version: AtomicU64::new(0),
            handle: AtomicUsize::new(0),
            layout: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Returns the layout, if this is the entry of `handle` and no thread changes it.
    #[inline]
    fn read(&self, handle: Handle) -> Option<*const Layout> {
        // Acquire: pairs with the Release of the same version in `write`.
        let version = self.version.load(Ordering::Acquire);
        let is_its = self.handle.load(Ordering::Relaxed) == handle;
        let found = self.layout.load(Ordering::Relaxed).cast_const();
        // Acquire: pairs with the fence in `write`. If one of the loads above has seen a change,
        // the load below sees the odd version before it, or a later one.
        fence(Ordering::Acquire);
        let same = self.version.load(Ordering::Relaxed) == version;
        (is_its && same && version.is_multiple_of(2)).then_some(found)
    }

    /// Changes the entry. One thread at a time.
    fn write(&self, handle: Handle, layout: *const Layout) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        // Release: pairs with the fence in `read`.
        fence(Ordering::Release);
        self.handle.store(handle, Ordering::Relaxed);
        self.layout.store(layout.cast_mut(), Ordering::Relaxed);
        // Release: pairs with the Acquire in `read`.
        self.version.store(version + 2, Ordering::Release);
    }
}

/// Types by their handles. A type whose place another type takes is forgotten.
pub struct Handles {
    entries: [Entry; PLACES],
    /// held by the thread that changes an entry; it calls nothing meanwhile
    changing: Mutex<()>,
}

/// The types of this process.
pub static HANDLES: Handles = Handles::new();

impl Handles {
    const fn new() -> Handles {
        Handles { entries: [const { Entry::none() }; PLACES], changing: Mutex::new(()) }
    }

    #[inline(always)]
    fn entry(&self, handle: Handle) -> &Entry {
        // Handles are neighbouring numbers, or addresses at multiples of a power of two: the high
        // bits of this product differ for either.
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let bits = handle.to_u64().wrapping_mul(MULTIPLIER) >> (u64::BITS - PLACES.ilog2());
        &self.entries[bits.to_usize()]
    }

    /// Returns the layout of a type, if it is here.
    #[inline]
    pub fn layout(&self, handle: Handle) -> Option<*const Layout> {
        self.entry(handle).read(handle)
    }

    /// Records the layout of a type that is in use, which is kept as its attribute.
    pub fn record(&self, handle: Handle, layout: &Layout) {
        // A thread that finds another one here does not wait: the next call records the type.
        let Some(_changing) = self.changing.try_lock() else { return };
        self.entry(handle).write(handle, layout);
    }

    /// Forgets a type whose attribute is being deleted.
    pub fn forget(&self, handle: Handle) {
        let _changing = self.changing.lock();
        let entry = self.entry(handle);
        if entry.handle.load(Ordering::Relaxed) == handle {
            entry.write(0, ptr::null());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::basic::Basic;
    use crate::sync::AtomicBool;
    use std::thread;

    /// A handle with the same place as `handle`.
    fn rival(handles: &Handles, handle: Handle) -> Handle {
        let is_rival = |other: &Handle| ptr::eq(handles.entry(*other), handles.entry(handle));
        (handle + 1..).find(is_rival).unwrap()
    }

    fn doubles(count: u64) -> Layout {
        Layout::basic(Basic::F64).contiguous(count).unwrap()
    }

    #[test]
    fn a_type_is_found_until_it_is_forgotten() {
        let handles = Box::new(Handles::new());
        let (one, other) = (doubles(2), doubles(3).resized(0, 32).unwrap());
        for (handle, layout) in [(0x8c00_0000, &one), (0x7f12_3456_7890, &other)] {
            assert_eq!(handles.layout(handle), None);
            handles.record(handle, layout);
            assert_eq!(handles.layout(handle), Some(ptr::from_ref(layout)));
            handles.forget(handle);
            assert_eq!(handles.layout(handle), None);
        }
    }

    #[test]
    fn a_type_takes_the_place_of_another_and_the_other_is_forgotten() {
        let handles = Box::new(Handles::new());
        let (first, second) = (0x8c00_0001, rival(&handles, 0x8c00_0001));
        let (one, other) = (doubles(1), doubles(2));
        handles.record(first, &one);
        handles.record(second, &other);
        assert_eq!(handles.layout(first), None);
        assert_eq!(handles.layout(second), Some(ptr::from_ref(&other)));
        // Freed later than its place was taken: the other type stays.
        handles.forget(first);
        assert_eq!(handles.layout(second), Some(ptr::from_ref(&other)));
    }

    #[test]
    fn a_reader_never_finds_the_layout_of_another_type() {
        let handles = Box::new(Handles::new());
        let (mine, theirs) = (0x8c00_0001, rival(&handles, 0x8c00_0001));
        let (my_layout, their_layout) = (doubles(4), doubles(9).resized(0, 80).unwrap());
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    handles.record(theirs, &their_layout);
                    handles.record(mine, &my_layout);
                    handles.forget(mine);
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                for (handle, layout) in [(mine, &my_layout), (theirs, &their_layout)] {
                    let found = handles.layout(handle);
                    assert!(found.is_none_or(|found| ptr::eq(found, layout)));
                }
            }
        });
    }
}
