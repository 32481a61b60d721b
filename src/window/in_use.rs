//! An object of a window that a collective call replaces while other threads may read it: the calls
//! that replace it, and the last use of the window, come when no thread uses the object.

use crate::sync::{AtomicPtr, Ordering};
use core::ptr;
use std::sync::Arc;

/// The object that is in use now; null: there is none.
pub struct InUse<T>(AtomicPtr<T>);

impl<T> Default for InUse<T> {
    fn default() -> InUse<T> {
        InUse(AtomicPtr::new(ptr::null_mut()))
    }
}

impl<T> InUse<T> {
    /// Returns the object.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        // Acquire: pairs with the Release in `replace`.
        // SAFETY: null, or an `Arc` that is given back when no thread uses the window.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the object for a use that may end later than that of its owner.
    pub fn shared(&self) -> Option<Arc<T>> {
        let found = ptr::from_ref(self.get()?);
        // SAFETY: it was made from an `Arc`, and this cell owns one reference.
        unsafe {
            Arc::increment_strong_count(found);
            Some(Arc::from_raw(found))
        }
    }

    /// Puts another object in its place, and returns it.
    pub fn replace(&self, new: Option<Arc<T>>) -> Option<Arc<T>> {
        let new = new.map_or(ptr::null(), Arc::into_raw).cast_mut();
        // Release: pairs with the Acquire in `get`.
        let old = self.0.swap(new, Ordering::AcqRel);
        // SAFETY: null, or made from an `Arc` here, once.
        (!old.is_null()).then(|| unsafe { Arc::from_raw(old) })
    }
}

impl<T> Drop for InUse<T> {
    fn drop(&mut self) {
        self.replace(None);
    }
}
