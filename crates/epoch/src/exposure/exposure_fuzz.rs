//! Made-up lists of posts, of targets that post and of targets that have damaged their memory, as a
//! start reads them. A post is used at most once, and only if a pair of the list names this rank.

use super::{BITS, COUNTED, PostBit, Started, entry};
use crate::rank_numbers::Rank;
use fompi_testkit::Choices;
use std::collections::BTreeSet;

/// Ranks, and pairs of a list.
const RANKS: usize = 5;
const PAIRS_MAX: usize = 6;

fn number(choices: &mut Choices) -> u64 {
    if choices.below(8) > 0 { choices.below(6) as u64 } else { choices.word() >> 24 }
}

/// The target `posts`: lists, each of one target, and whether its words are changed.
pub fn posts(data: &[u8]) {
    let (mut choices, mut started, me) = (Choices::of(data), Started::default(), Rank(2));
    let (mut uses, mut bits) = (0_u64, BTreeSet::new());
    while !choices.are_used_up() {
        let target = Rank(choices.below(RANKS) as u32);
        let mut list = Vec::new();
        let mut named = Vec::new();
        for _ in 0..choices.below(PAIRS_MAX) {
            let (number, origin) = (number(&mut choices), Rank(choices.below(RANKS) as u32));
            // One that no rank has, now and then.
            let bit = if choices.below(4) == 0 { u64::from(choices.byte()) } else { 0 };
            let mut pair = entry(number, PostBit(bit), origin);
            if choices.below(4) == 0 {
                pair[choices.below(2)] ^= choices.word();
            }
            let is_whole = pair == entry(number, PostBit(bit), origin);
            if is_whole && origin == me && bit <= u64::from(BITS) {
                named.push(bit);
            }
            list.extend(pair);
        }
        // A list may end within a pair.
        list.truncate(list.len() - choices.below(2).min(list.len()));
        let before = started.used;
        if started.uses(target, me, &list) {
            assert!(named.contains(&0), "a pair without a bit names this rank");
            assert_eq!(started.used, before.wrapping_add(COUNTED));
            uses += 1;
        } else {
            assert_eq!(started.used, before, "no post is used");
        }
        bits.extend(named.into_iter().filter(|bit| *bit > 0));
        let may_know = bits.iter().fold(0, |all, bit| all | PostBit(*bit).post());
        assert_eq!(started.known & !may_know, 0, "a known bit was in a list");
        assert!(started.others(choices.word()) >= -(1 << (u64::BITS - BITS - 1)));
    }
    assert_eq!(started.used, COUNTED.wrapping_mul(uses));
}

#[cfg(test)]
#[test]
fn the_kept_posts_are_used_once() {
    fompi_testkit::replay("posts", posts);
}
