//! Who serves a connection, under loom: every order of a rank, the service thread and the peers,
//! within a bound of preemptions; without loom the same tests on threads of the machine, which meet
//! few of these orders. `serving_order_tests` brings single orders about.

use std::sync::Arc;

#[cfg(loom)]
use loom::thread;
#[cfg(not(loom))]
use std::thread;

use super::serving_model::{AT_ONCE, EventList, NEVER, TargetProcess};
use fompi_testkit::model;

/// A rank waits in each of two epochs, until `answered` requests are answered, and has kept the
/// turn in between.
fn wait_twice(target: &TargetProcess, answered: [usize; 2]) {
    let mut may_sleep = target.connections.begin_rank() < 0;
    while target.list.answered() < answered[0] {
        may_sleep = target.step(may_sleep);
    }
    target.connections.keep_turn();
    target.wait_own(answered[1]);
}

/// Runs a rank together with the service thread and a peer, if there is one; then all requests have
/// to be answered by the service thread.
fn with_the_thread(
    target: &Arc<TargetProcess>,
    rank: fn(&TargetProcess),
    peer: Option<fn(&EventList)>,
    (answered, closed): (usize, usize),
) {
    let of_thread = target.clone();
    let service = thread::spawn(move || of_thread.thread());
    let list = target.list.clone();
    let peer = peer.map(|peer| thread::spawn(move || peer(&list)));
    rank(target);
    if let Some(peer) = peer {
        peer.join().unwrap();
    }
    target.list.await_progress(answered, closed);
    target.list.stop();
    service.join().unwrap();
}

#[test]
fn loom_a_rank_that_serves_misses_no_request_though_it_sleeps() {
    fn peer(list: &EventList) {
        list.send(0);
        list.send(0);
    }
    model(2, || {
        let target = TargetProcess::new((NEVER, NEVER), 1, 2);
        with_the_thread(&target, |target| target.wait_own(2), Some(peer), (2, 0));
    });
}

#[test]
fn loom_the_service_thread_carries_out_what_a_rank_leaves() {
    fn peer(list: &EventList) {
        // More than an event and the end of its round carry out.
        (0..3).for_each(|_| list.send(0));
    }
    model(2, || {
        let target = TargetProcess::new((NEVER, NEVER), 1, 3);
        with_the_thread(&target, TargetProcess::serve_once, Some(peer), (3, 0));
    });
}

#[test]
fn loom_answers_leave_when_there_is_room_whoever_serves_then() {
    fn peer(list: &EventList) {
        list.send(0);
        (0..2).for_each(|_| list.make_room(0));
        list.send(0);
    }
    model(2, || {
        let target = TargetProcess::new((NEVER, NEVER), 1, 0);
        with_the_thread(&target, TargetProcess::serve_once, Some(peer), (2, 0));
    });
}

#[test]
fn loom_a_rank_that_serves_again_finds_what_it_has_left() {
    fn rank(target: &TargetProcess) {
        target.serve_once();
        target.wait_own(3);
    }
    model(2, || {
        let target = TargetProcess::new((NEVER, NEVER), 1, 3);
        target.list.send(0);
        with_the_thread(&target, rank, Some(|list| (0..2).for_each(|_| list.send(0))), (3, 0));
    });
}

#[test]
fn loom_an_answer_that_has_found_no_memory_is_sent_again() {
    model(2, || {
        let target = TargetProcess::new((NEVER, NEVER), 1, 1);
        target.list.state().streams[0].no_memory = 2;
        with_the_thread(&target, TargetProcess::serve_once, Some(|list| list.send(0)), (1, 0));
    });
}

#[test]
fn loom_a_connection_that_ends_is_closed_behind_its_last_request_whoever_serves() {
    fn peer(list: &EventList) {
        list.send(0);
        list.end(0);
    }
    model(2, || {
        let target = TargetProcess::new((NEVER, NEVER), 1, 1);
        with_the_thread(&target, TargetProcess::serve_once, Some(peer), (1, 1));
        assert_eq!(target.connections.count(), 0);
    });
}

#[test]
fn loom_the_service_thread_serves_what_a_rank_has_taken_that_makes_no_step() {
    fn rank(target: &TargetProcess) {
        target.connections.begin_rank();
        target.list.send(0);
        // A handler of a signal begins here, and does not end before the requests are answered.
        target.list.wait(false);
        target.list.send(1);
    }
    model(3, || {
        let target = TargetProcess::new((AT_ONCE, NEVER), 2, 1);
        with_the_thread(&target, rank, None, (2, 0));
    });
}

#[test]
fn loom_a_rank_that_has_kept_the_turn_serves_what_comes_before_its_next_wait() {
    fn peer(list: &EventList) {
        (0..2).for_each(|_| list.send(0));
    }
    model(2, || {
        let target = TargetProcess::new((NEVER, NEVER), 1, 2);
        with_the_thread(&target, |target| wait_twice(target, [1, 2]), Some(peer), (2, 0));
    });
}

#[test]
fn loom_the_service_thread_serves_if_a_rank_that_has_kept_the_turn_comes_too_late() {
    fn rank(target: &TargetProcess) {
        target.connections.begin_rank();
        target.step(false);
        target.connections.keep_turn();
    }
    fn peer(list: &EventList) {
        (0..3).for_each(|_| list.send(0));
    }
    model(2, || {
        let target = TargetProcess::new((NEVER, AT_ONCE), 1, 3);
        with_the_thread(&target, rank, Some(peer), (3, 0));
    });
}
