//! Tests that the suite detects faults: a simulated transport that omits or breaks a call fails a
//! case with some seed. A cut connection is tested on a real transport, at each of its calls.

use super::ranks::{Exposing, RANKS, example};
use super::sim_ranks::{SimPeer, SimRank, sim_rank};
use super::{bytes_laws, words_laws};
use crate::faults::{CUT, Fault, Faulty};
use crate::{FAR, Sim, View, is_caught};
use fompi_base::error::Result;
use fompi_fabric::Fetch;
use fompi_fabric::layout::COMPLETE;
use fompi_fabric::remote::{Bytes, Network, Remote};
use std::rc::Rc;

type Words<'a, 'b> = View<'a, 'b, FAR>;

/// Whether a case for words fails on a transport with a fault.
fn words_fail(fault: Fault, case: impl Fn(&Words<'_, '_>) + Copy + 'static) -> bool {
    is_caught(RANKS, || move |sim: &Sim| case(&sim.far(fault)))
}

type Rank<'a, 'b> = SimRank<'a, 'b, Faulty<Rc<SimPeer<'a, 'b>>>>;

/// Whether a case for bytes fails on a transport with a fault.
fn bytes_fail(fault: Fault, case: impl Fn(&Rank<'_, '_>) + Copy + 'static) -> bool {
    let body = move |sim: &Sim| {
        case(&sim_rank(sim, |peer| Faulty::new(Rc::new(peer), fault)));
    };
    is_caught(RANKS, || body)
}

#[test]
fn words_without_faults_pass() {
    assert!(!words_fail(Fault::Nothing, |words| words_laws::one_compare_swap_wins(words)));
}

#[test]
fn a_flush_that_is_left_out_is_noticed() {
    assert!(words_fail(Fault::Flush, |words| words_laws::what_is_flushed_is_there_for_all(words)));
    assert!(words_fail(Fault::Flush, |words| {
        words_laws::what_is_flushed_for_all_is_there_for_all(words);
    }));
}

#[test]
fn an_order_that_is_left_out_is_noticed() {
    assert!(words_fail(Fault::Order, |words| words_laws::order_keeps_posts_in_order(words)));
    assert!(words_fail(Fault::Order, |words| {
        words_laws::an_answer_behind_an_order_is_a_flush(words);
    }));
    assert!(words_fail(Fault::Order, |words| {
        words_laws::the_answer_of_a_begun_fetch_behind_an_order_is_a_flush(words);
    }));
}

#[test]
fn a_post_that_is_left_out_is_noticed() {
    let case = |words: &Words<'_, '_>| words_laws::all_posts_are_counted(words);
    assert!(words_fail(Fault::Post(COMPLETE), case));
    assert!(words_fail(Fault::EveryOtherPost(COMPLETE), case));
}

#[test]
fn a_post_that_is_carried_out_twice_is_noticed() {
    let case = |words: &Words<'_, '_>| words_laws::all_posts_are_counted(words);
    assert!(words_fail(Fault::PostTwice(COMPLETE), case));
}

#[test]
fn a_wait_that_returns_at_once_is_noticed() {
    assert!(words_fail(Fault::Wait, |words| words_laws::all_posts_are_counted(words)));
}

#[test]
fn a_store_that_is_left_out_is_noticed() {
    assert!(words_fail(Fault::SetOwn, |words| {
        words_laws::what_an_owner_stores_is_seen_by_others(words);
    }));
}

#[test]
fn a_swap_in_two_steps_is_noticed() {
    assert!(words_fail(Fault::Atomicity, |words| words_laws::one_compare_swap_wins(words)));
}

#[test]
fn a_flush_of_bytes_that_is_left_out_is_noticed() {
    assert!(bytes_fail(Fault::Flush, |rank| {
        bytes_laws::a_flushed_put_is_there_for_all_and_nothing_around_it(rank);
    }));
    assert!(bytes_fail(Fault::Flush, |rank| {
        bytes_laws::a_get_arrives_by_a_local_flush_and_nothing_around_it(rank);
    }));
}

#[test]
fn an_order_of_bytes_that_is_left_out_is_noticed() {
    assert!(bytes_fail(Fault::Order, |rank| {
        bytes_laws::a_put_behind_an_order_is_the_one_that_stays(rank);
    }));
    assert!(bytes_fail(Fault::Order, |rank| {
        bytes_laws::a_get_behind_an_order_sees_the_put(rank);
    }));
    assert!(bytes_fail(Fault::Order, |rank| {
        bytes_laws::a_get_ahead_of_an_order_sees_what_was_there(rank);
    }));
}

/// All calls of a transport between nodes, until one fails. The caller keeps the bytes until a
/// flush.
fn all_calls(peer: &impl Network, at: Remote, bytes: &mut [u8; 40]) -> Result<()> {
    // SAFETY: the memory of a rank has room for this; the caller keeps the bytes.
    unsafe {
        peer.put(at, bytes.as_ptr(), 40)?;
        peer.get(bytes.as_mut_ptr(), at, 40)?;
    }
    peer.order();
    peer.flush_local()?;
    peer.post(at, 1)?;
    peer.fetch(at, Fetch::Add(1))?;
    peer.fetch_all(|_| (at, Fetch::Add(1)), &mut [0; 3])?;
    peer.fetch_and_read(at, Fetch::Add(1), at)?;
    peer.flush()
}

#[test]
fn a_cut_is_the_error_of_the_call_on_a_real_transport() {
    example(|rank| {
        let (peer, at) = rank.peer((rank.rank() + 1) % RANKS);
        let (at, mut bytes) = (*at, [1; 40]);
        let whole = Faulty::new(peer.clone(), Fault::Nothing);
        assert_eq!(all_calls(&whole, at, &mut bytes), Ok(()));
        for call in 0..whole.calls() {
            let cut = Faulty::new(peer.clone(), Fault::Cut(call));
            assert_eq!(all_calls(&cut, at, &mut bytes), Err(CUT), "call {call}");
            // Requests that were sent before the cut use the bytes.
            peer.flush().unwrap();
        }
        rank.meet();
    });
}
