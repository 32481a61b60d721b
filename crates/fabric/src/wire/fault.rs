//! Failure of an operation on a peer, before the peer decides on its consequence.

use crate::error::Error;
use crate::request::Broken;

/// The reason why an operation has failed: the connection is broken, or this process has a failure
/// of its own.
pub(super) enum Fault {
    Broken(Broken),
    Local(Error),
}

impl From<Broken> for Fault {
    fn from(broken: Broken) -> Fault {
        Fault::Broken(broken)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Local(error)
    }
}
