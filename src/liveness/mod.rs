//! Failure detection: which processes of a communicator still run, and which are lost. A rank that
//! waits for others checks this from time to time, so that its call fails instead of waiting
//! forever. Not for what a call does about a loss, and not for the system's answers about one
//! process (`sys::life`).
//!
//! | file           | what it tells                                                            |
//! |----------------|--------------------------------------------------------------------------|
//! | [`lives`]      | which processes of this node have ended, by records in their arena       |
//! | [`departures`] | which of them have called MPI_Finalize, so that their end is no failure  |
//! | [`losses`]     | which process of any node is lost, as noted for all ranks of this node   |
//! | [`deadlocks`]  | whether processes of this node wait for locks of each other                 |
//! | [`watch`]      | when a waiting rank checks the processes of other nodes                  |

pub mod deadlocks;
pub mod departures;
pub mod lives;
pub mod losses;
pub mod watch;
