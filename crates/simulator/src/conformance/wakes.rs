//! Law 7 with several threads that sleep: a post wakes all threads of a rank, also those that wait
//! for other words. The sleeps of these ranks have no bound, so a lost wake-up is detected.

use super::ranks::{far_over_tcp, near_and_far_over_tcp, shm_asleep};
use fompi_base::rank_numbers::Rank;
use fompi_fabric::layout;
use fompi_fabric::{WordAt, Words};

/// Two threads of each rank pass a token round, each with a word of its own.
fn two_tokens_go_round(words: &(impl Words + Sync)) {
    let (next, last) = (Rank((words.rank().0 + 1) % words.size()), Rank(words.size() - 1));
    let pass = |word| {
        for round in 1..=100 {
            // Only rank 0 has the token before another rank has posted.
            let wanted = if words.rank() == Rank(0) { round - 1 } else { round };
            words.wait_own(word, |count| count == wanted).unwrap();
            if words.rank() != last || round < 100 {
                words.post(WordAt { rank: next, word }, 1).unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        for word in [layout::fence(0), layout::fence(1)] {
            scope.spawn(move || pass(word));
        }
    });
}

#[test]
fn posts_wake_all_threads_of_a_rank() {
    shm_asleep(two_tokens_go_round);
}

#[test]
fn posts_of_other_nodes_wake_all_threads_of_a_rank() {
    far_over_tcp(|words| two_tokens_go_round(words));
}

#[test]
fn posts_of_the_own_node_and_of_others_wake_all_threads_of_a_rank() {
    near_and_far_over_tcp(|words| two_tokens_go_round(words));
}
