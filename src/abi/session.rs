//! MPI_Session_init, which is passed on. A session may raise the level of thread support while
//! windows exist (MPI-4.1 §11.3.1), and no later call tells this library. No other call of sessions
//! matters to this library.

use super::answer::code;
use super::{MPI_Errhandler, MPI_Info, MPI_Session};
use crate::error::Error;
use crate::mpi::Host;
use crate::window::registry;

entry! {
    /// Begins a session (MPI-4.1 §11.3.1): passed on to the MPI underneath. This library notes
    /// whether the session raises the level of thread support, so that windows lock their state
    /// from then on. Errors: MPI_ERR_UNSUPPORTED_OPERATION if the MPI underneath has no sessions,
    /// or those of that MPI.
    MPI_Session_init PMPI_Session_init (
        info: MPI_Info, errhandler: MPI_Errhandler, session: *mut MPI_Session,
    ) {
        let host = Host::get();
        let Some(init) = host.call.session_init else {
            return code(host, &Error::Unsupported("sessions, which this MPI does not have"));
        };
        // SAFETY: the caller's arguments, as for the MPI underneath alone.
        let answer = unsafe { init(info, errhandler, session) };
        if answer == 0 {
            note(host, session);
        }
        answer
    }
}

/// Notes the level of a session that has begun.
#[cold]
fn note(host: &Host, session: *const MPI_Session) {
    // SAFETY: the MPI underneath has just stored a handle there.
    if host.session_began(unsafe { host.fetch(session) }) {
        registry::several_threads();
    }
}
