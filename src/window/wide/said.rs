//! What ranks tell each other when some of them may be unable to do what all have to do: one
//! number, of which the least counts. A cause comes before what follows from another rank's, an
//! error before a reason to leave a window to the MPI underneath, and of two errors that of the
//! lower rank.
//!
//! | number         | meaning                                                            |
//! |----------------|--------------------------------------------------------------------|
//! | rank, class    | that rank has an error of this class                               |
//! | [`FOLLOWS`]    | this one cannot because of another, which tells the cause          |
//! | [`WHYS`] + n   | reason n to leave the window to the MPI underneath                 |
//! | `i64::MAX`     | nothing is wrong                                                   |

use crate::error::{Class, Error, Result};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::window::report::Why;

/// Of who cannot because another rank on another node cannot, and knows no more.
pub const OTHERS: Error = Error::Unsupported("another rank cannot make a window over many nodes");

const CLASS_BITS: u32 = 8;
const FOLLOWS: i64 = 1 << 61;
const WHYS: i64 = 1 << 62;

/// Reasons to leave a window to the MPI underneath, the first of which counts.
const REASONS: [Why; 8] = [
    Why::Descriptors,
    Why::Memory,
    Why::NoContact,
    Why::TooLarge,
    Why::Gpu,
    Why::Denied,
    Why::Unregistered,
    Why::NoRoad,
];

/// What a rank says, or what all have said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said(i64);

impl Said {
    /// Nothing is wrong.
    pub const FINE: Said = Said(i64::MAX);

    /// An error of `rank`, or what it was told of another one's.
    pub fn error(rank: u32, error: &Error) -> Said {
        match error {
            error if *error == OTHERS => Said(FOLLOWS),
            Error::Refused { rank, class } => Said::class(*rank, *class),
            error => Said::class(rank, error.class()),
        }
    }

    fn class(rank: u32, class: Class) -> Said {
        Said(i64::from(rank) << CLASS_BITS | class as i64)
    }

    /// A reason to leave the window to the MPI underneath.
    pub fn why(why: Why) -> Said {
        let known = REASONS.iter().position(|reason| *reason == why);
        Said(WHYS + known.unwrap_or(REASONS.len() - 1) as i64)
    }

    /// What comes of it for a rank that has done its own part, if anything is wrong.
    pub fn verdict(self) -> Result<Option<Why>> {
        match self {
            Said::FINE => Ok(None),
            Said(FOLLOWS) => Err(OTHERS),
            Said(why) if why >= WHYS => Ok(REASONS.get((why - WHYS) as usize).copied()),
            Said(error) => {
                let class = Class::from_number(error as u8);
                Err(Error::Refused { rank: (error >> CLASS_BITS) as u32, class })
            }
        }
    }

    /// What all ranks of a communicator say. Collective.
    pub fn by_all(self, host: &Host, comm: Comm) -> Result<Said> {
        comm.least(host, self.0).map(Said)
    }
}

/// Whether none has a reason to leave a window to the MPI underneath; the one that counts.
/// Collective.
pub fn none_has_reasons<T>(
    host: &Host,
    comm: Comm,
    part: core::result::Result<T, Why>,
) -> Result<core::result::Result<T, Why>> {
    let mine = part.as_ref().err().map_or(Said::FINE, |why| Said::why(*why));
    Ok(match mine.by_all(host, comm)?.verdict()? {
        Some(why) => Err(why),
        None => part,
    })
}

/// Whether all ranks could do their parts, of which this is the one of `rank`. Collective.
///
/// # Errors
/// Its own error, else the cause that another one told.
pub fn all_could<T>(host: &Host, comm: Comm, rank: u32, part: Result<T>) -> Result<T> {
    let mine = part.as_ref().err().map_or(Said::FINE, |error| Said::error(rank, error));
    let all = mine.by_all(host, comm)?;
    match part {
        Err(error) if error != OTHERS => Err(error),
        part => all.verdict().and(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is heard where these are said.
    fn heard(said: &[Said]) -> Result<Option<Why>> {
        Said(said.iter().map(|said| said.0).min().unwrap_or(i64::MAX)).verdict()
    }

    #[test]
    fn the_cause_is_heard_and_not_what_follows_from_it() {
        let none = Error::NoMemory { bytes: 1 };
        let cause = Error::Refused { rank: 3, class: Class::NoMem };
        let all = [Said::error(0, &OTHERS), Said::FINE, Said::error(3, &none)];
        assert_eq!(heard(&all), Err(cause.clone()));
        // Who was told by rank 3 of its node tells of that one.
        assert_eq!(heard(&[Said::error(2, &cause), Said::FINE]), Err(cause));
        assert_eq!(heard(&[Said::error(0, &OTHERS)]), Err(OTHERS));
    }

    #[test]
    fn an_error_comes_before_a_reason_to_delegate() {
        let wrong = Error::Argument(Class::Disp, "displacement unit", 0);
        let all = [Said::why(Why::Gpu), Said::error(1, &wrong), Said::why(Why::TooLarge)];
        assert_eq!(heard(&all), Err(Error::Refused { rank: 1, class: Class::Disp }));
        assert_eq!(heard(&[all[0], all[2], Said::FINE]), Ok(Some(Why::TooLarge)));
        assert_eq!(heard(&[Said::FINE, Said::FINE]), Ok(None));
    }
}
