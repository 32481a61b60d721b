//! Lost processes. The first rank that learns of a loss records it in its node's arena, so that all
//! waiting ranks there report the same process. The leader of a node answers the probes of ranks of
//! other nodes with a *failure notice* of two words: a process of the node that has died, which no
//! rank there need have noticed yet, and the loss that is recorded in the arena.
//!
//! | `lost`                              | meaning                                               |
//! |-------------------------------------|-------------------------------------------------------|
//! | 0                                   | no process is known to be lost                        |
//! | rank + 1, pid << 32, cause << 56    | that rank of the communicator of all nodes is lost,   |
//! |                                     | process `pid` of its node; it stays so                |

use super::lives::Lives;
use crate::number::Number;
use crate::rank_numbers::{ProcessNumber, Rank};
use crate::sync::{AtomicU64, Ordering};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A process that is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss<R = Rank> {
    /// its rank in the communicator of all nodes, or its number on its node
    pub rank: R,
    /// its process id, less than 2^24 on any Linux
    pub pid: i32,
    /// the cause
    pub cause: Cause,
}

/// The cause of a loss, as other ranks learn it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// a rank of its node has found it dead
    Died = 1,
    /// its listener is closed
    Closed = 2,
    /// the device of some rank, of this node or another one, does not reach it
    Unreached = 3,
}

impl Cause {
    /// Returns the text for errors.
    pub fn text(self) -> &'static str {
        match self {
            Cause::Died => "it has died",
            Cause::Closed => "its connection thread is gone",
            Cause::Unreached => "another rank has lost it",
        }
    }

    /// Returns the cause with this text.
    pub fn of(text: &str) -> Cause {
        let known = [Cause::Died, Cause::Closed].into_iter().find(|cause| cause.text() == text);
        known.unwrap_or(Cause::Unreached)
    }
}

const PID_AT: u32 = 32;
const CAUSE_AT: u32 = 56;
const PID_MASK: u64 = (1 << (CAUSE_AT - PID_AT)) - 1;

impl<R: ProcessNumber> Loss<R> {
    /// Encodes the loss as a word other than 0.
    pub fn word(self) -> u64 {
        let pid = self.pid.cast_unsigned().to_u64() & PID_MASK;
        u64::from(self.rank.number() + 1) | pid << PID_AT | (self.cause as u64) << CAUSE_AT
    }

    /// Decodes a word; `None` for 0.
    pub fn from(word: u64) -> Option<Loss<R>> {
        let rank = R::of_number(word.low_u32().checked_sub(1)?);
        let cause = match word >> CAUSE_AT {
            1 => Cause::Died,
            2 => Cause::Closed,
            _ => Cause::Unreached,
        };
        Some(Loss { rank, pid: (word >> PID_AT & PID_MASK) as i32, cause })
    }
}

impl Loss {
    /// Records the loss in `lost` if none is recorded there, and returns the loss that is recorded.
    pub fn note(self, lost: &AtomicU64) -> Loss {
        // Relaxed: the word is complete in itself, and orders no other memory.
        let noted = lost.compare_exchange(0, self.word(), Ordering::Relaxed, Ordering::Relaxed);
        noted.err().and_then(Loss::from).unwrap_or(self)
    }

    /// Returns the loss that is recorded.
    pub fn noted(lost: &AtomicU64) -> Option<Loss> {
        // Relaxed: the word is complete in itself.
        Loss::from(lost.load(Ordering::Relaxed))
    }
}

/// How long the result of a check also serves later probes, because a node has many ranks, and a
/// check visits all of them.
const GOOD: Duration = Duration::from_millis(100);

/// An arena that ranks of other nodes may probe.
struct Watched {
    lives: Weak<Lives>,
    /// time and result of the last check of its processes
    read_at: Option<(Instant, u64)>,
}

impl Watched {
    /// Returns a process that has died, as a word, or 0. Calls `find` to check, unless the last
    /// check was a short time ago.
    fn dead(&mut self, now: Instant, read: impl FnOnce() -> u64) -> u64 {
        match self.read_at {
            Some((when, found)) if now - when < GOOD => found,
            _ => self.read_at.insert((now, read())).1,
        }
    }
}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

/// Registers an arena for probes, by its processes.
pub fn watch(lives: &Arc<Lives>) {
    let mut watched = WATCHED.lock();
    watched.retain(|known| known.lives.strong_count() > 0);
    watched.push(Watched { lives: Arc::downgrade(lives), read_at: None });
}

/// Returns the failure notice for the arena whose records are in the segment at the address `at` of
/// this process: a process of the arena that has died, and the loss that is recorded there, each as
/// a word. The connection thread calls this, so that it must not call MPI.
pub fn notice(at: u64) -> [u64; 2] {
    let mut watched = WATCHED.lock();
    for known in watched.iter_mut() {
        let Some(lives) = known.lives.upgrade() else { continue };
        if lives.address() != at {
            continue;
        }
        let died = |(rank, pid)| Loss { rank, pid, cause: Cause::Died }.word();
        let dead = known.dead(Instant::now(), || lives.dead().map_or(0, died));
        // Relaxed: as in `record`.
        return [dead, lives.lost().load(Ordering::Relaxed)];
    }
    [0; 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_probes_check_the_processes_now_and_then() {
        let mut watched = Watched { lives: Weak::new(), read_at: None };
        let began = Instant::now();
        let mut calls = 0;
        for turn in 0..40 {
            let found = watched.dead(began + turn * GOOD / 4, || {
                calls += 1;
                calls
            });
            assert_eq!(found, 1 + u64::from(turn / 4));
        }
        assert_eq!(calls, 10);
    }

    #[test]
    fn a_loss_is_a_word_and_the_first_one_stays() {
        let loss = Loss { rank: Rank(0), pid: 4_194_304, cause: Cause::Unreached };
        let other = Loss { rank: Rank(u32::MAX - 1), pid: 1, cause: Cause::of("it has died") };
        let lost = AtomicU64::new(0);
        assert_eq!((Loss::noted(&lost), Loss::from(other.word())), (None, Some(other)));
        assert_eq!((loss.note(&lost), other.note(&lost)), (loss, loss));
        assert_eq!(Loss::noted(&lost), Some(loss));
    }
}
