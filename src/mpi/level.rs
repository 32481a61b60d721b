//! The level of thread support of this process (MPI-4.1 §11.6): that of MPI_Init_thread and those
//! of all sessions. A session may give a higher level than MPI_Init_thread did (§11.3.1), at any
//! time; MPI_Query_thread still returns the level of MPI_Init_thread. The level of a session stays
//! after its end, which is no sign that its threads have ended.
//!
//! | [`SESSIONS`] | meaning                                             | next                   |
//! |--------------|-----------------------------------------------------|------------------------|
//! | NONE         | no session was seen                                 | LOWER, MULTIPLE        |
//! | LOWER        | all sessions are below MPI_THREAD_MULTIPLE          | MULTIPLE               |
//! | MULTIPLE     | a session is for several threads at once, or was, or its level is not known | |

use super::comm::check;
use super::handle::Handle;
use super::host::Host;
use crate::number::Number;
use crate::sync::{AtomicU32, Ordering};
use core::ffi::{CStr, c_int};
use core::ptr;

const NONE: u32 = 0;
const LOWER: u32 = 1;
const MULTIPLE: u32 = 2;

static SESSIONS: AtomicU32 = AtomicU32::new(NONE);

/// Whether a session gave MPI_THREAD_MULTIPLE to this process.
pub fn is_raised() -> bool {
    // Acquire: pairs with the Release in `session_began`.
    SESSIONS.load(Ordering::Acquire) == MULTIPLE
}

impl Host {
    /// Whether several threads of this process may call MPI at once.
    pub fn threads(&self) -> bool {
        // Acquire: as in `is_raised`.
        let sessions = SESSIONS.load(Ordering::Acquire);
        sessions == MULTIPLE
            || match self.level() {
                Some(level) => level == self.constants.thread_multiple,
                None => sessions == NONE,
            }
    }

    /// Returns the level of MPI_Query_thread, if that may be called: it is for the World Model
    /// (MPI-4.1 §11.6.2).
    fn level(&self) -> Option<c_int> {
        let (mut finalized, mut level) = (0, self.constants.thread_multiple);
        // SAFETY: an out parameter of ours.
        unsafe { (self.call.finalized)(&mut finalized) };
        if finalized != 0 || !self.initialized() {
            return None;
        }
        // SAFETY: an out parameter of ours; an MPI that refuses leaves the highest level there.
        unsafe { (self.call.query_thread)(&mut level) };
        Some(level)
    }

    /// Notes the level of a session that has begun. Returns whether it is the first one for several
    /// threads at once.
    pub fn session_began(&self, session: Handle) -> bool {
        let level = if self.gives_multiple(session) { MULTIPLE } else { LOWER };
        // AcqRel: pairs with the Acquire in `is_raised` and in `threads`.
        SESSIONS.fetch_max(level, Ordering::AcqRel) < level && level == MULTIPLE
    }

    /// Whether a session gives MPI_THREAD_MULTIPLE, or its level is not known.
    fn gives_multiple(&self, session: Handle) -> bool {
        let mut level = [0; 64];
        let mut found: c_int = 0;
        let Some(get_info) = self.call.session_get_info else { return true };
        let mut info: Handle = 0;
        // SAFETY: a session that was just made, and an out parameter of ours.
        if check(unsafe { get_info(session, &mut info) }).is_err() {
            return true;
        }
        let (key, bytes) = (c"thread_level".as_ptr(), level.len().to_i32() - 1);
        // SAFETY: an info object that was just made, and a buffer of one byte more than `bytes`.
        let code =
            unsafe { (self.call.info_get)(info, key, bytes, level.as_mut_ptr(), &mut found) };
        // SAFETY: made above, not used again.
        unsafe { (self.call.info_free)(&mut info) };
        let lower = [c"MPI_THREAD_SINGLE", c"MPI_THREAD_FUNNELED", c"MPI_THREAD_SERIALIZED"];
        // SAFETY: zeroed, and longer than what is written to it.
        let level = unsafe { CStr::from_ptr(ptr::from_ref(&level).cast()) };
        code != 0 || found == 0 || !lower.contains(&level)
    }
}
