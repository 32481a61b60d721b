//! The barrier of ranks that share cores: a tree of counters. Not for ranks of several nodes: a
//! rank waits for the answers of the counters.
//!
//! | word                    | at                   | meaning                               |
//! |-------------------------|----------------------|---------------------------------------|
//! | [`ENTERED`]             | each rank            | n: this rank has entered barrier n    |
//! | [`arrived`], of level l | the first of a group | the arrivals of all its members, ever |
//! | [`RELEASED`]            | each rank            | n: all ranks have entered barrier n   |
//!
//! A group of level 0 is `fan_in` ranks that follow each other; a group of the next level is
//! `fan_in` such groups, each again a member, and so on up to the one group of all ranks. A
//! rank that enters adds 1 to the counter of its group. If it is the last member, all ranks of the
//! group have entered, so it adds 1 to the counter of the next level, too. The rank that is last in
//! the group of all ranks releases the first rank of each member. Each of these, once released,
//! releases the first ranks of the members of its own group, and so on down. All ranks wait for
//! their release, the last one too: no post to a rank is under way when the barrier ends there.
//!
//! | a counter of m members   | step                              | becomes     |
//! |--------------------------|-----------------------------------|-------------|
//! | m (n - 1) to m n - 1     | a member enters barrier n         | one more    |
//! | m n                      | a member enters barrier n + 1     | m n + 1     |
//!
//! The last step is possible only after m n: a member enters the next barrier when it was released
//! from this one. So a counter that becomes m n has counted the last member in barrier n, and no
//! counter needs to be reset.
//!
//! [`arrived`]: layout::arrived

use crate::error::Result;
use crate::fabric::layout::{self, ENTERED, RELEASED};
use crate::fabric::{Fetch, WordAt, Words};
use crate::number::Number;
use crate::rank_numbers::Rank;

/// The barrier number `number` of a tree whose counters count `fan_in` ranks.
pub fn barrier(words: &impl Words, fan_in: u32, number: u64) -> Result<()> {
    words.set_own(ENTERED, number);
    let (me, size) = (words.rank().0, words.size());
    // The ranks of a member of the group of all ranks.
    let mut member = 1;
    while member * fan_in < size {
        member *= fan_in;
    }
    if arrive(words, fan_in, number)? {
        release(words, (0..size).step_by(member.to_usize()))?;
    }
    words.wait_own(RELEASED, |released| released >= number)?;
    while member > 1 {
        let (group, end) = (member, size.min(me + member));
        member /= fan_in;
        if me % group == 0 {
            release(words, (me..end).step_by(member.to_usize()).skip(1))?;
        }
    }
    Ok(())
}

/// Counts this rank in its group, and in the next one each time that it is the last member. Returns
/// whether it is the last of all ranks.
fn arrive(words: &impl Words, fan_in: u32, number: u64) -> Result<bool> {
    let (me, size) = (words.rank().0, words.size());
    let (mut level, mut member) = (0, 1);
    loop {
        // No overflow: sizes are at most `RANKS_MAX`, and `fan_in` is small.
        let group = member * fan_in;
        let first = me - me % group;
        let members = (size - first).min(group).div_ceil(member);
        let at = WordAt { rank: Rank(first), word: layout::arrived(level) };
        let before = words.fetch(at, Fetch::Add(1))?;
        if before + 1 != number * u64::from(members) {
            return Ok(false);
        }
        if group >= size {
            return Ok(true);
        }
        (level, member) = (level + 1, group);
    }
}

/// Releases ranks from the barrier.
fn release(words: &impl Words, ranks: impl Iterator<Item = u32>) -> Result<()> {
    for rank in ranks {
        words.post_awaited(WordAt { rank: Rank(rank), word: RELEASED }, 1)?;
    }
    Ok(())
}
