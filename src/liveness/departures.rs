//! Processes that leave in MPI_Finalize. It first deletes the attributes of MPI_COMM_SELF (MPI-4.1
//! §11.2.4). A callback then marks this process in the records of its arenas: from now on its end
//! is no failure.

#![allow(clippy::missing_safety_doc)] // callbacks: called by the host MPI

use super::lives::Lives;
use crate::mpi::{Handle, Host};
use crate::sync::{AtomicBool, Ordering};
use core::ffi::{c_int, c_void};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock, Weak};

static BEGUN: AtomicBool = AtomicBool::new(false);
static NOTED: Mutex<Vec<Weak<Lives>>> = Mutex::new(Vec::new());
static FIRST: OnceLock<fn()> = OnceLock::new();

/// Returns whether MPI_Finalize has begun.
pub fn begun() -> bool {
    BEGUN.load(Ordering::Relaxed)
}

/// Sets what this process does first when MPI_Finalize begins. The first call counts.
pub fn do_first(work: fn()) {
    FIRST.get_or_init(|| work);
}

/// Makes sure that this process is marked in the records of an arena when it leaves.
pub fn note(lives: &Arc<Lives>) {
    let mut noted = NOTED.lock();
    noted.retain(|known| known.strong_count() > 0);
    noted.push(Arc::downgrade(lives));
    drop(noted);
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
        FIRST.get().inspect(|work| work());
    }
    for lives in NOTED.lock().iter().filter_map(Weak::upgrade) {
        lives.depart();
    }
    0
}
