//! Made-up lists of posts of other ranks, whose words locate a longer list, or are none that a rank
//! has stored.

use super::{AREAS, LongList, WORDS, area_length};
use crate::error::Class;
use fompi_testkit::Choices;

/// The target `post_lists`: the words of a list.
pub fn post_lists(data: &[u8]) {
    let mut choices = Choices::of(data);
    while !choices.are_used_up() {
        let mut words: [u64; WORDS] = core::array::from_fn(|_| choices.word());
        if choices.below(4) > 0 {
            let (area, length) = (choices.below(AREAS), usize::from(choices.byte()) << 7);
            [words[0], words[1]] = LongList { area, length }.words();
            words[choices.below(2)] ^= u64::from(choices.byte()) << choices.below(56);
        }
        match LongList::of(&words) {
            Ok(Some(list)) => {
                assert!(list.area < AREAS && list.length <= area_length(list.area));
                assert_eq!(list.words(), words[..2]);
            }
            Ok(None) => {}
            Err(error) => assert_eq!(error.class(), Class::Intern),
        }
    }
}

#[cfg(test)]
#[test]
fn the_kept_lists_are_read_or_refused() {
    fompi_testkit::replay("post_lists", post_lists);
}
