//! Processes that leave in MPI_Finalize. It first deletes the attributes of MPI_COMM_SELF (MPI-4.1
//! §11.2.4). A callback then marks this process in its arenas: from now on its end is no failure.

#![allow(clippy::missing_safety_doc)] // callbacks: called by the MPI underneath

use super::Arena;
use crate::mpi::{Handle, Host};
use crate::sync::{AtomicBool, Ordering};
use core::ffi::{c_int, c_void};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

static BEGUN: AtomicBool = AtomicBool::new(false);
static ARENAS: Mutex<Vec<Weak<Arena>>> = Mutex::new(Vec::new());

/// Returns whether MPI_Finalize has begun.
pub fn begun() -> bool {
    BEGUN.load(Ordering::Relaxed)
}

/// Makes sure that this process is marked in `arena` when it leaves.
pub fn note(arena: &Arc<Arena>) {
    let mut arenas = ARENAS.lock();
    arenas.retain(|known| known.strong_count() > 0);
    arenas.push(Arc::downgrade(arena));
    drop(arenas);
    watch();
}

fn watch() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    let host = Host::get();
    // Relaxed: exactly one thread sets the attribute, and no thread waits for that.
    if host.initialized()
        && !WATCHED.swap(true, Ordering::Relaxed)
        && let Ok(keyval) = host.comm_keyval(leave)
    {
        let (self_, value) = (host.constants.comm_self, core::ptr::null_mut());
        // SAFETY: a valid communicator and keyval; the value is not used.
        unsafe { (host.call.comm_set_attr)(self_, keyval, value) };
    }
}

unsafe extern "C" fn leave(_: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    if !BEGUN.swap(true, Ordering::Relaxed) {
        crate::window::waits::print();
    }
    for arena in ARENAS.lock().iter().filter_map(Weak::upgrade) {
        arena.process(arena.rank).state.store(1, Ordering::Release);
    }
    0
}
