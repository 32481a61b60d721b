//! Cache of decoded layouts, as attributes of their types: the MPI reuses handles after
//! MPI_Type_free, and an attribute is gone with its type. A transfer holds a reference (Arc) to its
//! layout. [`super::handles`] finds most layouts without a call of the MPI.

#![allow(clippy::missing_safety_doc)] // callbacks: called by the host MPI

use super::handles::HANDLES;
use crate::datatype::type_map::Layout;
use crate::error::Result;
use crate::mpi::comm::check;
use crate::mpi::functions::do_not_copy;
use crate::mpi::{Handle, Host};
use core::ffi::{c_int, c_void};
use core::ptr;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// Returns the layout that is kept with a type, or `None` if it is not known without a call of the
/// MPI.
#[inline]
pub fn find(datatype: Handle) -> Option<Arc<Layout>> {
    let layout = HANDLES.layout(datatype)?;
    // SAFETY: the caller is using the type, so neither it nor its attribute, the layout, is freed
    // meanwhile.
    Some(unsafe { counted(layout) })
}

/// Returns a further owner of a layout.
///
/// # Safety
/// It is the pointer that `set` made of an Arc whose count is not given back yet.
unsafe fn counted(layout: *const Layout) -> Arc<Layout> {
    // SAFETY: guaranteed by the caller.
    unsafe { Arc::increment_strong_count(layout) };
    // SAFETY: one count more than before, and it is ours.
    unsafe { Arc::from_raw(layout) }
}

/// Returns the layout that is kept with a type.
pub fn get(host: &Host, datatype: Handle) -> Result<Option<Arc<Layout>>> {
    let (mut layout, mut found): (*const Layout, c_int) = (ptr::null(), 0);
    let (keyval, out) = (keyval(host)?, (&raw mut layout).cast());
    // SAFETY: local out parameters.
    check(unsafe { (host.call.type_get_attr)(datatype, keyval, out, &mut found) })?;
    if found == 0 {
        return Ok(None);
    }
    // SAFETY: the attribute is the pointer that `set` made of an Arc, whose count it holds.
    let layout = unsafe { counted(layout) };
    HANDLES.record(datatype, &layout);
    Ok(Some(layout))
}

/// Keeps a layout with its type, unless another thread was first. A layout that `get` has found in
/// one thread must not be replaced, and so freed, by another thread before the first has counted
/// it.
pub fn set(host: &Host, datatype: Handle, layout: &Arc<Layout>) -> Result<()> {
    static SETTING: Mutex<()> = Mutex::new(());
    // try_lock: the thread with this lock may wait inside the host MPI for a lock that this thread
    // holds there. If it is taken, the layout is not cached, and the next use decodes the type
    // again.
    let Some(_setting) = SETTING.try_lock() else { return Ok(()) };
    if get(host, datatype)?.is_some() {
        return Ok(());
    }
    let value = Arc::into_raw(layout.clone()).cast_mut().cast();
    let keyval = keyval(host)?;
    // SAFETY: a valid type and keyval; from here on the attribute holds the count.
    check(unsafe { (host.call.type_set_attr)(datatype, keyval, value) })
}

fn keyval(host: &Host) -> Result<c_int> {
    static KEYVAL: OnceLock<c_int> = OnceLock::new();
    unsafe extern "C" fn delete(of: Handle, _: c_int, value: *mut c_void, _: *mut c_void) -> c_int {
        HANDLES.forget(Host::get().handle(of));
        // SAFETY: the attribute is the pointer that `set` made of an Arc; the type is being freed,
        // so no code may use it any more.
        drop(unsafe { Arc::from_raw(value.cast_const().cast::<Layout>()) });
        0
    }
    if let Some(keyval) = KEYVAL.get() {
        return Ok(*keyval);
    }
    let (mut keyval, nothing) = (0, ptr::null_mut());
    // SAFETY: callbacks of the types of MPI-4.1 §7.7.4, and an out parameter of ours.
    check(unsafe { (host.call.type_create_keyval)(do_not_copy, delete, &mut keyval, nothing) })?;
    Ok(*KEYVAL.get_or_init(|| keyval))
}
