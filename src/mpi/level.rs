//! The level of thread support of this process (MPI-4.1 §11.6): that of MPI_Init_thread, which
//! MPI_Query_thread returns, and those of sessions. A session may give a higher level at any time
//! (§11.3.1), by a call that this library does not see. But only a program that calls
//! MPI_Session_init has sessions: one of its objects has that name, of C or Fortran, among its
//! dynamic symbols. A program that gets the function by dlsym alone is not detected.

use super::host::Host;
use crate::sys::dl;
use crate::sys::loaded_object;
use core::ffi::{CStr, c_int};
use parking_lot::Mutex;

/// The names that a library of the MPI itself defines: of C, of mpif.h, of mpi_f08. A profiling
/// tool may have the latter, too; then the program names one as well.
const OF_MPI: [&CStr; 3] = [c"PMPI_Session_init", c"mpi_session_init_", c"mpi_session_init_f08_"];

/// The answer of [`Host::may_have_sessions`], and the changes of the loaded libraries before it.
static LAST_ANSWER: Mutex<Option<(u64, bool)>> = Mutex::new(None);

impl Host {
    /// Whether several threads of this process may call MPI at once, as far as MPI_Init_thread has
    /// decided that. Without the World Model there are sessions, of any level.
    pub fn threads(&self) -> bool {
        self.level().is_none_or(|level| level == self.constants.thread_multiple)
    }

    /// Returns the level of MPI_Query_thread, if that may be called, because it is for the World
    /// Model (MPI-4.1 §11.6.2).
    fn level(&self) -> Option<c_int> {
        let (mut finalized, mut level) = (0, self.constants.thread_multiple);
        // SAFETY: a local out parameter.
        unsafe { (self.call.finalized)(&mut finalized) };
        if finalized != 0 || !self.initialized() {
            return None;
        }
        // SAFETY: an out parameter of ours; an MPI that refuses leaves the highest level there.
        unsafe { (self.call.query_thread)(&mut level) };
        Some(level)
    }

    /// Whether this MPI has sessions.
    pub fn has_sessions(&self) -> bool {
        self.call.session_init.is_some()
    }

    /// Whether the program, or a library other than the MPI's, names MPI_Session_init. Searches
    /// them only if one was loaded or unloaded since the last call.
    pub fn may_have_sessions(&self) -> bool {
        if !self.has_sessions() {
            return false;
        }
        let changes = dl::changes();
        if let (Some(changes), Some((before, answer))) = (changes, *LAST_ANSWER.lock())
            && changes == before
        {
            return answer;
        }
        // No lock is held in calls of the loader: a library may call MPI while it is loaded.
        // In C, and in each way of writing Fortran.
        let names = [c"MPI_Session_init", c"mpi_session_init", c"MPI_SESSION_INIT"];
        let named = loaded_object::all_that_name(&names);
        let answer = named.iter().any(|object| !object.defines_one_of(&OF_MPI));
        *LAST_ANSWER.lock() = changes.map(|changes| (changes, answer));
        answer
    }
}
