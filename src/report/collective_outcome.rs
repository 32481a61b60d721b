//! Collective outcome of a step that each rank must complete and some may be unable to. Each rank
//! contributes one number, and the least number is the outcome. The order of the numbers puts an
//! error before an error that only follows from another rank's, errors before reasons to delegate a
//! window, and of two errors that of the lower rank first.
//!
//! | number         | meaning                                                            |
//! |----------------|--------------------------------------------------------------------|
//! | rank, class    | the rank has an error of this class                                |
//! | [`FOLLOWS`]    | the rank fails because another one failed, which reports the cause |
//! | [`WHYS`] + n   | reason n to delegate the window                                    |
//! | `i64::MAX`     | the rank has completed the step                                    |

use crate::error::{Class, Error, Result};
use crate::messages;
use crate::mpi::Host;
use crate::mpi::comm::Comm;
use crate::number::Number;
use crate::rank_numbers::Rank;
use crate::report::Why;

/// The error of a rank that fails because a rank on another node failed; the cause is not known
/// here.
pub const CAUSE_ELSEWHERE: Error = Error::Wrong(&messages::CAUSE_ELSEWHERE);

const CLASS_BITS: u32 = 8;
const FOLLOWS: i64 = 1 << 61;
const WHYS: i64 = 1 << 62;

/// Reasons to delegate a window. Of several reasons, the first in this list is the outcome.
const REASONS: [Why; 9] = [
    Why::Descriptors,
    Why::Memory,
    Why::NoListener,
    Why::NoContact,
    Why::TooLarge,
    Why::Gpu,
    Why::Denied,
    Why::Unregistered,
    Why::NoTransport,
];

/// The contribution of one rank, or the outcome of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepOutcome(i64);

impl StepOutcome {
    /// The step is complete.
    pub const FINE: StepOutcome = StepOutcome(i64::MAX);

    /// Returns the contribution of `rank`, which has failed with `error`.
    pub fn error(rank: Rank, error: &Error) -> StepOutcome {
        match error {
            error if *error == CAUSE_ELSEWHERE => StepOutcome(FOLLOWS),
            // The error of another rank, which the ranks of this node have agreed on.
            Error::Refused { rank, class } => StepOutcome::class(*rank, *class),
            error => StepOutcome::class(rank, error.class()),
        }
    }

    fn class(rank: Rank, class: Class) -> StepOutcome {
        StepOutcome(i64::from(rank.0) << CLASS_BITS | class as i64)
    }

    /// Returns the contribution of a rank with a reason to delegate the window.
    pub fn why(why: Why) -> StepOutcome {
        let known = REASONS.iter().position(|reason| *reason == why);
        StepOutcome(WHYS + known.unwrap_or(REASONS.len() - 1).to_u64().cast_signed())
    }

    /// Returns the outcome for a rank that has completed its own step: nothing, a reason to
    /// delegate the window, or the error of another rank.
    pub fn outcome(self) -> Result<Option<Why>> {
        match self {
            StepOutcome::FINE => Ok(None),
            StepOutcome(FOLLOWS) => Err(CAUSE_ELSEWHERE),
            StepOutcome(why) if why >= WHYS => {
                Ok(REASONS.get((why - WHYS).cast_unsigned().to_usize()).copied())
            }
            StepOutcome(error) => {
                let class = Class::from_number(error.cast_unsigned().low_u8());
                let rank = Rank((error >> CLASS_BITS).cast_unsigned().low_u32());
                Err(Error::Refused { rank, class })
            }
        }
    }

    /// Returns the outcome of all ranks of a communicator, to which this rank contributes `self`.
    /// Collective.
    pub fn of_all(self, host: &Host, comm: Comm) -> Result<StepOutcome> {
        comm.least(host, self.0).map(StepOutcome)
    }
}

/// Returns `part` if no rank has a reason to delegate a window, otherwise the reason of the
/// outcome. Collective.
pub fn none_has_reasons<T>(
    host: &Host,
    comm: Comm,
    part: core::result::Result<T, Why>,
) -> Result<core::result::Result<T, Why>> {
    let mine = part.as_ref().err().map_or(StepOutcome::FINE, |why| StepOutcome::why(*why));
    Ok(match mine.of_all(host, comm)?.outcome()? {
        Some(why) => Err(why),
        None => part,
    })
}

/// Returns `part`, the result of this rank `rank`, if all ranks have succeeded. Collective.
///
/// # Errors
/// This rank's own error, or the error that another rank reports.
pub fn all_succeeded<T>(host: &Host, comm: Comm, rank: Rank, part: Result<T>) -> Result<T> {
    let mine =
        part.as_ref().err().map_or(StepOutcome::FINE, |error| StepOutcome::error(rank, error));
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
    fn outcome(ranks: &[StepOutcome]) -> Result<Option<Why>> {
        StepOutcome(ranks.iter().map(|rank| rank.0).min().unwrap_or(i64::MAX)).outcome()
    }

    #[test]
    fn the_outcome_is_the_cause_and_not_what_follows_from_it() {
        let none = Error::NoMemory { bytes: 1 };
        let cause = Error::Refused { rank: Rank(3), class: Class::NoMem };
        let follows = StepOutcome::error(Rank(0), &CAUSE_ELSEWHERE);
        let all = [follows, StepOutcome::FINE, StepOutcome::error(Rank(3), &none)];
        assert_eq!(outcome(&all), Err(cause.clone()));
        // A rank that knows of the error of rank 3, on its own node, contributes that error.
        assert_eq!(outcome(&[StepOutcome::error(Rank(2), &cause), StepOutcome::FINE]), Err(cause));
        assert_eq!(outcome(&[follows]), Err(CAUSE_ELSEWHERE));
    }

    #[test]
    fn an_error_comes_before_a_reason_to_delegate() {
        let wrong = Error::Argument(&messages::DISP_UNIT, 0);
        let all = [
            StepOutcome::why(Why::Gpu),
            StepOutcome::error(Rank(1), &wrong),
            StepOutcome::why(Why::TooLarge),
        ];
        assert_eq!(outcome(&all), Err(Error::Refused { rank: Rank(1), class: Class::Disp }));
        assert_eq!(outcome(&[all[0], all[2], StepOutcome::FINE]), Ok(Some(Why::TooLarge)));
        assert_eq!(outcome(&[StepOutcome::FINE, StepOutcome::FINE]), Ok(None));
    }
}
