//! The tests that every transport must pass: one suite for control words ([`Words`](super::Words),
//! laws 1 to 9), one for bytes, and one for the other operations of a transport between nodes
//! ([`remote`](super::remote), laws 10 to 20), with one for accumulates that the target carries out
//! (laws 21 to 24), on the transports that have these. Three ranks run each case. The transports
//! are those of the library; a new one is a row in one of the lists at the end of this file, with a
//! way to run its ranks in [`ranks`] ([`sim_ranks`] for the simulator). [`strength`] shows that the
//! suite detects broken transports.

mod bytes_laws;
mod network_laws;
mod processes;
mod ranks;
mod sim_ranks;
mod strength;
mod target_laws;
mod wakes;
mod words_laws;

/// Makes a test of each case on each transport: `transport: run` says how a case runs there. The
/// tests of a transport marked `device` need a device, and run one at a time.
macro_rules! suite {
    ($laws:ident: $cases:tt, $($rest:tt)*) => { suite! { @transports $laws $cases $($rest)* } };
    (@transports $laws:ident $cases:tt) => {};
    (@transports $laws:ident $cases:tt device $transport:ident: $run:expr; $($rest:tt)*) => {
        suite! { @tests $laws $cases [#[ignore = "needs a device"]] $transport ranks::turn(); $run }
        suite! { @transports $laws $cases $($rest)* }
    };
    (@transports $laws:ident $cases:tt $transport:ident: $run:expr; $($rest:tt)*) => {
        suite! { @tests $laws $cases [] $transport (); $run }
        suite! { @transports $laws $cases $($rest)* }
    };
    (@tests $laws:ident [$($case:ident)*] $marks:tt $transport:ident $turn:expr; $run:expr) => {
        mod $transport {
            #[allow(unused_imports)]
            use super::super::{$laws, ranks, sim_ranks};
            $( suite! { @test $laws $case $marks $turn; $run } )*
        }
    };
    (@test $laws:ident $case:ident [$($mark:tt)*] $turn:expr; $run:expr) => {
        #[test]
        $($mark)*
        fn $case() {
            let _turn = $turn;
            $run(|rank| $laws::$case(rank));
        }
    };
}

mod words {
    suite! {
        words_laws: [
            fetch_answers_what_was_before
            an_owner_changes_its_contended_words_by_fetch
            begun_fetches_are_all_answered
            all_posts_are_counted
            one_compare_swap_wins
            a_post_arrives_without_a_flush
            a_post_wakes_a_rank_that_sleeps
            an_awaited_post_arrives_and_is_ordered
            order_keeps_posts_in_order
            what_is_flushed_is_there_for_all
            what_is_flushed_for_all_is_there_for_all
            an_answer_behind_an_order_is_a_flush
            the_answer_of_a_begun_fetch_behind_an_order_is_a_flush
            what_an_owner_stores_is_seen_by_others
            two_words_are_changed_at_once
            what_is_ordered_is_there_before_what_follows
            what_is_flushed_or_ordered_is_there_for_all
        ],
        sim: sim_ranks::sim;
        sim_far: sim_ranks::sim_far;
        shm_awake: ranks::shm_awake;
        shm_asleep: ranks::shm_asleep;
        far_over_example: ranks::far_over_example;
        far_over_fake_device: ranks::far_over_fake_device;
        far_over_write_after_write: ranks::far_over_write_after_write;
        far_over_unordered: ranks::far_over_unordered;
        far_over_tcp: ranks::far_over_tcp;
        far_served_over_tcp: ranks::far_served_over_tcp;
        near_and_far_over_tcp: ranks::near_and_far_over_tcp;
        device far_over_device: ranks::far_over_device;
    }
}

mod bytes {
    suite! {
        bytes_laws: [
            a_flushed_put_is_there_for_all_and_nothing_around_it
            a_get_arrives_by_a_local_flush_and_nothing_around_it
            the_bytes_of_a_put_may_be_changed_after_a_local_flush
            a_put_behind_an_order_is_the_one_that_stays
            a_get_ahead_of_an_order_sees_what_was_there
            a_get_behind_an_order_sees_the_put
            no_bytes_are_no_transfer
            the_runs_of_a_put_change_nothing_between_them
            the_runs_of_a_get_arrive_where_they_belong
            several_ranks_put_side_by_side
        ],
        sim: sim_ranks::sim_bytes;
        shm: ranks::mapped;
        process_vm: ranks::process_vm;
        process_vm_gathered: ranks::process_vm_gathered;
        example: ranks::example;
        fake_device: ranks::fake_device;
        write_after_write: ranks::write_after_write;
        unordered: ranks::unordered;
        tcp: ranks::tcp;
        device device: ranks::device;
    }
}

mod network {
    suite! {
        network_laws: [
            a_change_answers_what_was_before
            begun_changes_are_all_answered
            no_addition_of_any_rank_is_lost
            one_swap_wins
            many_words_are_changed_with_one_call
            additions_without_answers_are_done_by_a_flush
            an_answer_behind_an_order_is_a_flush
            a_word_is_read_behind_a_change_of_another
            a_bounce_buffer_reads_changes_and_writes_back
            two_bounce_buffers_are_different_memory
            a_notification_comes_behind_its_puts
            a_notification_comes_behind_its_gets
            each_notification_counts_once
        ],
        example: ranks::example;
        fake_device: ranks::fake_device;
        write_after_write: ranks::write_after_write;
        unordered: ranks::unordered;
        tcp: ranks::tcp;
        device device: ranks::device;
    }
}

mod at_target {
    use crate::conformance::ranks;
    use fompi_fabric::remote::Network;

    suite! {
        target_laws: [
            an_accumulate_changes_its_elements_and_no_others
            results_are_what_the_elements_were
            no_sum_of_any_rank_is_lost
            accumulates_take_effect_in_their_order
            long_accumulates_arrive_in_parts
            many_results_arrive_at_one_local_flush
            what_follows_the_request_for_a_lock_waits_for_it
            puts_under_locks_are_done_if_all_locks_are_free
            portions_arrive_and_nothing_around_them
            portions_are_combined_and_answered
            one_swap_of_each_width_wins
        ],
        tcp: ranks::tcp;
    }

    #[test]
    fn the_other_transports_say_that_their_targets_carry_out_none() {
        ranks::example(|rank| assert!(rank.peer(0).0.at_target().is_none()));
        ranks::fake_device(|rank| assert!(rank.peer(0).0.at_target().is_none()));
    }
}
