//! Requests of the host MPI that are complete when work of this library is done: generalized
//! requests (MPI-4.1 section 13.2), which every MPI_Wait and MPI_Test takes, mixed with others. A
//! thread that waits advances the work: MPICH's family polls a request for which a thread waits
//! (MPIX_Grequest_start), and Open MPI calls back whenever it makes progress
//! (opal_progress_register). Only MPICH 4.0 and 4.1 do not poll in MPI_Request_get_status, so this
//! library serves that call first. Not for other MPIs ([`are_possible`]). Invariant: nothing here
//! waits for a lock that a waiting thread may hold.
//!
//! | `stage`     | meaning                                                             |
//! |-------------|---------------------------------------------------------------------|
//! | `UNDER_WAY` | the work may go on                                                  |
//! | `DONE`      | it is done or has failed, and its request is or will be complete    |

#![allow(clippy::missing_safety_doc)] // callbacks: called by the host MPI

use super::comm::check;
use super::handle::{Handle, Status};
use super::host::Host;
use crate::error::{Error, Result};
use crate::number::Number;
use crate::sync::{AtomicU8, AtomicUsize, Ordering};
use core::ffi::{c_int, c_void};
use core::slice;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Work that goes on after the call that began it has returned.
pub trait RequestWork: Send {
    /// Whether it is done, without waiting.
    fn is_done(&mut self) -> Result<bool>;
    /// Lets other threads run before the next question.
    fn rest(&self);
}

/// Returns the code of an error of a call, in the numbers of the ABI.
pub type Code = fn(&Host, &'static str, &Error) -> c_int;

const UNDER_WAY: u8 = 0;
const DONE: u8 = 1;

/// The state after a request.
struct State {
    host: &'static Host,
    code: Code,
    call: &'static str,
    work: Mutex<Box<dyn RequestWork>>,
    stage: AtomicU8,
    /// the handle, once it is known
    request: AtomicUsize,
    error: OnceLock<Error>,
}

impl State {
    /// Advances the work, and completes the request if the work is done. Returns whether it is.
    fn advance(&self) -> bool {
        // Relaxed: a request that is complete needs no more.
        if self.stage.load(Ordering::Relaxed) == DONE {
            return true;
        }
        // Another thread is advancing it.
        let Some(mut work) = self.work.try_lock() else { return false };
        match work.is_done() {
            Ok(false) => return false,
            Ok(true) => {}
            Err(error) => {
                let _ = self.error.set(error);
            }
        }
        drop(work);
        self.complete();
        true
    }

    /// Lets other threads run before the next attempt.
    fn rest(&self) {
        match self.work.try_lock() {
            Some(work) => work.rest(),
            None => std::thread::yield_now(),
        }
    }

    /// Completes the request, once.
    fn complete(&self) {
        // Relaxed: the thread that changes it calls the MPI, whose own locks order the rest.
        if self.stage.swap(DONE, Ordering::Relaxed) == UNDER_WAY {
            let request = self.request.load(Ordering::Relaxed);
            // SAFETY: a request of ours that is completed once.
            unsafe { (self.host.call.grequest_complete)(request) };
        }
    }
}

/// Whether a thread that waits for a request can advance its work.
pub fn are_possible(host: &Host) -> bool {
    host.call.grequest_start_with_poll.is_some() || host.call.progress_register.is_some()
}

/// Starts a request that is complete when the work is done.
///
/// # Safety
/// `request` points to a request handle of this ABI.
pub unsafe fn start(
    host: &'static Host,
    work: Box<dyn RequestWork>,
    (call, code): (&'static str, Code),
    request: *mut usize,
) -> Result<()> {
    let (stage, error) = (AtomicU8::new(UNDER_WAY), OnceLock::new());
    let work = Mutex::new(work);
    let state =
        Arc::new(State { host, code, call, work, stage, request: AtomicUsize::new(0), error });
    let (mut made, extra): (Handle, _) = (0, Arc::into_raw(state.clone()).cast_mut().cast());
    let answer = match host.call.grequest_start_with_poll {
        // SAFETY: callbacks that take what is given here, and an out parameter of ours.
        Some(start) => unsafe { start(query, free, cancel, poll, wait, extra, &mut made) },
        // SAFETY: callbacks that take what is given here, and an out parameter of ours.
        None => unsafe { (host.call.grequest_start)(query, free, cancel, extra, &mut made) },
    };
    if let Err(error) = check(answer) {
        // SAFETY: made above, and not shared.
        drop(unsafe { Arc::from_raw(extra.cast::<State>()) });
        return Err(error);
    }
    // Relaxed: no thread uses the request before this call has returned, or it is in the list.
    state.request.store(made, Ordering::Relaxed);
    // SAFETY: guaranteed by the caller.
    unsafe { host.store(request, made) };
    enlist(host, state);
    Ok(())
}

/// The requests that are under way, in turns, and some that are done.
static LIST: Mutex<VecDeque<Arc<State>>> = Mutex::new(VecDeque::new());
/// The length of the list.
static LISTED: AtomicUsize = AtomicUsize::new(0);
/// The most requests that one call advances.
const TURN: usize = 64;

fn enlist(host: &Host, state: Arc<State>) {
    let mut list = LIST.lock();
    // Removes as many finished requests as are added, even if no call ever advances the list.
    for _ in 0..list.len().min(2) {
        list.rotate_left(1);
        // Relaxed: as in `advance`.
        if list.back().is_some_and(|last| last.stage.load(Ordering::Relaxed) == DONE) {
            list.pop_back();
        }
    }
    list.push_back(state);
    // Relaxed: a hint, which is read again and again.
    LISTED.store(list.len(), Ordering::Relaxed);
    drop(list);
    if let Some(register) = host.call.progress_register {
        // Each time: once is enough, but an MPI that was ended and begun again has lost the
        // registration.
        // SAFETY: a function of Open MPI, which keeps the address of a function of this library.
        unsafe { register(progress) };
    }
}

/// Advances the work of a request, if it is one of this library, for a call that returns its
/// status. No other request: MPICH expects requests for which a thread waits to be completed there.
pub fn advance(host: &Host, request: Handle) {
    // Relaxed: a thread that passes a request has its handle from the call that listed it.
    if host.call.progress_register.is_some() || LISTED.load(Ordering::Relaxed) == 0 {
        return;
    }
    let is_it = |state: &&Arc<State>| {
        // Relaxed: as in `advance` and `start`. A handle of one that is done may be in use again.
        let under_way = state.stage.load(Ordering::Relaxed) == UNDER_WAY;
        under_way && state.request.load(Ordering::Relaxed) == request
    };
    let state = LIST.lock().iter().find(is_it).cloned();
    if let Some(state) = state {
        state.advance();
    }
}

/// Called by Open MPI when it makes progress: advances requests.
unsafe extern "C" fn progress() -> c_int {
    if LISTED.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    // This thread or another one advances the list already.
    let Some(mut list) = LIST.try_lock() else { return 0 };
    let mut events = 0;
    for _ in 0..list.len().min(TURN) {
        let Some(state) = list.pop_front() else { break };
        match state.advance() {
            true => events += 1,
            false => list.push_back(state),
        }
    }
    LISTED.store(list.len(), Ordering::Relaxed);
    events
}

/// Returns the state after the argument of a callback.
///
/// # Safety
/// `extra` was given to the MPI by `start`, and not to `free` yet.
unsafe fn behind<'a>(extra: *mut c_void) -> &'a State {
    // SAFETY: guaranteed by the caller.
    unsafe { &*extra.cast::<State>() }
}

/// Called by MPICH to advance a request.
unsafe extern "C" fn poll(extra: *mut c_void, _: *mut Status) -> c_int {
    // SAFETY: a callback of ours.
    unsafe { behind(extra) }.advance();
    0
}

/// Called by MPICH to wait for requests.
unsafe extern "C" fn wait(count: c_int, extras: *mut *mut c_void, _: f64, _: *mut Status) -> c_int {
    // SAFETY: `count` of them.
    for extra in unsafe { slice::from_raw_parts(extras, count.max(0).cast_unsigned().to_usize()) } {
        // SAFETY: a callback of ours.
        let state = unsafe { behind(*extra) };
        while !state.advance() {
            state.rest();
        }
    }
    0
}

/// Fills the status of a request that is complete; returns the error for the call that waited.
unsafe extern "C" fn query(extra: *mut c_void, status: *mut Status) -> c_int {
    // SAFETY: a callback of ours.
    let State { host, code, call, error, .. } = unsafe { behind(extra) };
    // SAFETY: the status of the call; only its error means anything (MPI-4.1 §12.3.5).
    unsafe {
        (host.call.status_set_elements)(status, host.byte(), 0);
        (host.call.status_set_cancelled)(status, 0);
    }
    error.get().map_or(0, |error| code(host, call, error))
}

/// Called when the request is freed. It may have been freed although the work goes on (MPI-4.1
/// §12.3.5), and some MPIs keep it until it is completed.
unsafe extern "C" fn free(extra: *mut c_void) -> c_int {
    // SAFETY: given away by `start`, once.
    unsafe { Arc::from_raw(extra.cast::<State>()) }.complete();
    0
}

/// Work on windows is not cancelled (MPI-4.1 §12.3.5).
unsafe extern "C" fn cancel(_: *mut c_void, _: c_int) -> c_int {
    0
}
