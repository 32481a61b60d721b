//! Whether calls on several words of a target may run as plain loops, on a window over several
//! nodes whose targets carry out accumulates (docs/decisions/0004). There a call on a single word
//! looks at the lock behind its operation, and a target that carries it out must not wait for a
//! lock. So no pass can be withdrawn, and there are fewer states than on one node
//! ([`super::passes`]). Not for the proof that a call is atomic as a whole ([`super::whole`]).
//!
//! | `SINGLES` | meaning                                                                 |
//! |-----------|-------------------------------------------------------------------------|
//! | 0         | no rank has changed a single word without the lock: plain loops         |
//! | 1         | a rank may do so at any time; it stays so as long as the window         |
//!
//! The holder of the target's accumulate lock alone changes the word. A rank sets it before its
//! first call on a single word of the target. So a holder that reads 0 is alone with the words
//! until it releases the lock: all other calls hold the lock, or their rank waits for it in
//! [`enter`].

use super::passes::Others;
use super::{Nodes, whole};
use crate::error::Result;
use crate::fabric::layout::SINGLES;
use crate::fabric::{Fetch, WordAt, Words};
use crate::rank_numbers::Rank;

/// The word of a target.
fn word(target: Rank) -> WordAt {
    WordAt { rank: target, word: SINGLES }
}

/// Prepares the first call of this rank on a single word of a target.
pub fn enter(words: &impl Words, target: Rank, nodes: impl Nodes) -> Result<()> {
    whole::several(words, target, nodes, || match words.read(word(target))? {
        0 => words.fetch(word(target), Fetch::Add(1)).map(drop),
        _ => Ok(()),
    })
}

/// Whether others may change single words of a target, whose lock the caller holds.
pub fn others(words: &impl Words, target: Rank) -> Result<Others> {
    Ok(match words.read(word(target))? {
        0 => Others::None,
        _ => Others::OnSingleWords,
    })
}
