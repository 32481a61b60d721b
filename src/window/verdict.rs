//! The verdict of all ranks on a step that each of them must complete and some may be unable to.
//! Each rank contributes one number, and the least number is the verdict. The order of the numbers
//! puts an error before an error that only follows from another rank's, errors before reasons to
//! leave a window to the MPI underneath, and of two errors that of the lower rank first.
//!
//! | number         | meaning                                                            |
//! |----------------|--------------------------------------------------------------------|
//! | rank, class    | the rank has an error of this class                                |
//! | [`FOLLOWS`]    | the rank fails because another one failed, which reports the cause |
//! | [`WHYS`] + n   | reason n to leave the window to the MPI underneath                 |
//! | `i64::MAX`     | the rank has completed the step                                    |

use crate::error::{Class, Error, Result};
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::window::report::Why;

/// The error of a rank that fails because a rank on another node failed; the cause is not known
/// here.
pub const CAUSE_ELSEWHERE: Error =
    Error::Unsupported("another rank cannot make a window over many nodes");

const CLASS_BITS: u32 = 8;
const FOLLOWS: i64 = 1 << 61;
const WHYS: i64 = 1 << 62;

/// Reasons to leave a window to the MPI underneath. Of several reasons, the first in this list is
/// the verdict.
const REASONS: [Why; 9] = [
    Why::Descriptors,
    Why::Memory,
    Why::NoListener,
    Why::NoContact,
    Why::TooLarge,
    Why::Gpu,
    Why::Denied,
    Why::Unregistered,
    Why::NoRoad,
];

/// The contribution of one rank, or the verdict of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict(i64);

impl Verdict {
    /// The step is complete.
    pub const FINE: Verdict = Verdict(i64::MAX);

    /// Returns the contribution of `rank`, which has failed with `error`.
    pub fn error(rank: Rank, error: &Error) -> Verdict {
        match error {
            error if *error == CAUSE_ELSEWHERE => Verdict(FOLLOWS),
            // The error of another rank, which the ranks of this node have agreed on.
            Error::Refused { rank, class } => Verdict::class(*rank, *class),
            error => Verdict::class(rank, error.class()),
        }
    }

    fn class(rank: Rank, class: Class) -> Verdict {
        Verdict(i64::from(rank.0) << CLASS_BITS | class as i64)
    }

    /// Returns the contribution of a rank with a reason to leave the window to the MPI underneath.
    pub fn why(why: Why) -> Verdict {
        let known = REASONS.iter().position(|reason| *reason == why);
        Verdict(WHYS + known.unwrap_or(REASONS.len() - 1).to_u64().cast_signed())
    }

    /// Returns the outcome for a rank that has completed its own step: nothing, a reason to leave
    /// the window to the MPI underneath, or the error of another rank.
    pub fn outcome(self) -> Result<Option<Why>> {
        match self {
            Verdict::FINE => Ok(None),
            Verdict(FOLLOWS) => Err(CAUSE_ELSEWHERE),
            Verdict(why) if why >= WHYS => {
                Ok(REASONS.get((why - WHYS).cast_unsigned().to_usize()).copied())
            }
            Verdict(error) => {
                let class = Class::from_number(error.cast_unsigned().low_u8());
                let rank = Rank((error >> CLASS_BITS).cast_unsigned().low_u32());
                Err(Error::Refused { rank, class })
            }
        }
    }

    /// Returns the verdict of all ranks of a communicator, to which this rank contributes `self`.
    /// Collective.
    pub fn of_all(self, host: &Host, comm: Comm) -> Result<Verdict> {
        comm.least(host, self.0).map(Verdict)
    }
}

/// Returns `part` if no rank has a reason to leave a window to the MPI underneath, else the reason
/// that the verdict names. Collective.
pub fn none_has_reasons<T>(
    host: &Host,
    comm: Comm,
    part: core::result::Result<T, Why>,
) -> Result<core::result::Result<T, Why>> {
    let mine = part.as_ref().err().map_or(Verdict::FINE, |why| Verdict::why(*why));
    Ok(match mine.of_all(host, comm)?.outcome()? {
        Some(why) => Err(why),
        None => part,
    })
}

/// Returns `part`, the result of this rank `rank`, if all ranks have succeeded. Collective.
///
/// # Errors
/// This rank's own error, else the error that another rank reports.
pub fn all_succeeded<T>(host: &Host, comm: Comm, rank: Rank, part: Result<T>) -> Result<T> {
    let mine = part.as_ref().err().map_or(Verdict::FINE, |error| Verdict::error(rank, error));
    let all = mine.of_all(host, comm)?;
    match part {
        Err(error) if error != CAUSE_ELSEWHERE => Err(error),
        part => all.outcome().and(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the outcome when the ranks contribute these values.
    fn outcome(ranks: &[Verdict]) -> Result<Option<Why>> {
        Verdict(ranks.iter().map(|rank| rank.0).min().unwrap_or(i64::MAX)).outcome()
    }

    #[test]
    fn the_verdict_is_the_cause_and_not_what_follows_from_it() {
        let none = Error::NoMemory { bytes: 1 };
        let cause = Error::Refused { rank: Rank(3), class: Class::NoMem };
        let follows = Verdict::error(Rank(0), &CAUSE_ELSEWHERE);
        let all = [follows, Verdict::FINE, Verdict::error(Rank(3), &none)];
        assert_eq!(outcome(&all), Err(cause.clone()));
        // A rank that knows of the error of rank 3, on its own node, contributes that error.
        assert_eq!(outcome(&[Verdict::error(Rank(2), &cause), Verdict::FINE]), Err(cause));
        assert_eq!(outcome(&[follows]), Err(CAUSE_ELSEWHERE));
    }

    #[test]
    fn an_error_comes_before_a_reason_to_delegate() {
        let wrong = Error::Argument(Class::Disp, "displacement unit", 0);
        let all =
            [Verdict::why(Why::Gpu), Verdict::error(Rank(1), &wrong), Verdict::why(Why::TooLarge)];
        assert_eq!(outcome(&all), Err(Error::Refused { rank: Rank(1), class: Class::Disp }));
        assert_eq!(outcome(&[all[0], all[2], Verdict::FINE]), Ok(Some(Why::TooLarge)));
        assert_eq!(outcome(&[Verdict::FINE, Verdict::FINE]), Ok(None));
    }
}
