//! Who serves a connection, in one order of the rank, the service thread and the peers each. The
//! models of `serving_tests` go through all orders, but only under loom.

use super::connections::Server;
use super::serving_model::{AT_ONCE, IN, NEVER, TargetProcess};

/// The service thread takes the events that are there, and does not end its round.
fn take_by_thread(target: &TargetProcess) {
    for (index, what) in target.list.wait(false) {
        target.connections.event(Server::Thread, index, what);
    }
}

#[test]
fn the_service_thread_serves_what_comes_behind_the_turn_of_a_rank() {
    let target = TargetProcess::new((NEVER, NEVER), 1, 1);
    target.connections.begin_rank();
    target.connections.end_rank();
    target.list.send(0);
    take_by_thread(&target);
    assert_eq!(target.list.answered(), 1);
}

#[test]
fn a_rank_finds_the_event_that_the_service_thread_has_taken() {
    let target = TargetProcess::new((NEVER, NEVER), 1, 1);
    target.connections.begin_rank();
    target.list.send(0);
    take_by_thread(&target);
    assert_eq!(target.list.answered(), 0);
    target.step(false);
    assert_eq!(target.list.answered(), 1);
}

#[test]
fn requests_are_awaited_again_behind_an_answer_that_found_no_room() {
    let target = TargetProcess::new((NEVER, NEVER), 1, 0);
    target.list.send(0);
    take_by_thread(&target);
    assert_eq!(target.list.answered(), 0);
    (0..2).for_each(|_| target.list.make_room(0));
    take_by_thread(&target);
    assert_eq!(target.list.answered(), 1);
    target.list.send(0);
    take_by_thread(&target);
    assert_eq!(target.list.answered(), 2);
}

#[test]
fn the_service_thread_serves_what_a_rank_that_makes_no_step_has_taken() {
    let target = TargetProcess::new((AT_ONCE, NEVER), 2, 1);
    target.connections.begin_rank();
    target.list.send(0);
    // The rank takes the event; a handler of a signal begins before it serves the connection.
    target.list.wait(false);
    target.list.send(1);
    // In its first round the service thread finds that the rank is late.
    (0..2).for_each(|_| target.thread_round());
    assert_eq!(target.list.answered(), 2);
}

#[test]
fn a_connection_has_one_turn_in_a_round_next_to_its_events() {
    let target = TargetProcess::new((NEVER, NEVER), 1, 20);
    (0..20).for_each(|_| target.list.send(0));
    for round in 1..=4 {
        target.take(vec![(0, IN.cast_unsigned())], Server::Thread);
        assert_eq!(target.list.answered(), 2 * round);
    }
}

#[test]
fn requests_that_come_while_a_rank_serves_do_not_wake_the_service_thread() {
    let target = TargetProcess::new((NEVER, NEVER), 1, 1);
    target.connections.begin_rank();
    target.list.send(0);
    assert!(target.list.state().thread_is_deaf);
    target.connections.keep_turn();
    assert!(target.list.state().thread_is_deaf);
    target.connections.end_kept_turn();
    target.thread_round();
    assert_eq!(target.list.answered(), 1);
}

#[test]
fn no_event_wakes_the_service_thread_for_a_late_rank_that_keeps_its_turn() {
    let target = TargetProcess::new((AT_ONCE, NEVER), 1, 1);
    target.connections.begin_rank();
    target.thread_round();
    assert!(!target.list.state().thread_is_deaf);
    target.connections.keep_turn();
    assert!(target.list.state().thread_is_deaf);
}

#[test]
fn the_service_thread_serves_when_a_rank_has_kept_the_turn_for_too_long() {
    let target = TargetProcess::new((NEVER, AT_ONCE), 1, 1);
    // The timer of the steps runs when the rank keeps the turn.
    target.connections.begin_rank();
    target.connections.keep_turn();
    assert!(target.list.state().has_timer_ended());
    target.list.send(0);
    // The service thread takes the turn in the first round.
    (0..2).for_each(|_| target.thread_round());
    assert_eq!(target.list.answered(), 1);
}

#[test]
fn a_rank_that_keeps_the_turn_again_and_again_starts_the_timer_once() {
    let target = TargetProcess::new((NEVER, NEVER), 1, 1);
    for _ in 0..100 {
        target.connections.begin_rank();
        target.connections.keep_turn();
    }
    // One for the steps, one for the turn that was kept.
    assert_eq!(target.list.state().timers_started, 2);
}

#[test]
fn a_rank_finds_what_the_service_thread_has_left_while_it_kept_the_turn() {
    let target = TargetProcess::new((NEVER, NEVER), 1, 1);
    target.connections.begin_rank();
    target.connections.keep_turn();
    target.list.send(0);
    take_by_thread(&target);
    assert_eq!(target.list.answered(), 0);
    target.serve_once();
    assert_eq!(target.list.answered(), 1);
}

#[test]
fn a_rank_is_busy_for_a_time_after_its_wait() {
    let busy_after = |keep_max, wait: fn(&TargetProcess)| {
        let target = TargetProcess::new((NEVER, keep_max), 1, 1);
        assert!(!target.connections.is_busy());
        target.connections.begin_rank();
        wait(&target);
        target.connections.is_busy()
    };
    assert!(busy_after(NEVER, |target| target.connections.end_rank()));
    assert!(busy_after(NEVER, |target| target.connections.keep_turn()));
    assert!(!busy_after(AT_ONCE, |target| target.connections.end_rank()));
}

#[test]
fn what_a_turn_leaves_keeps_its_server_from_waiting_and_no_other() {
    let target = TargetProcess::new((NEVER, NEVER), 1, 20);
    (0..20).for_each(|_| target.list.send(0));
    target.take(vec![(0, IN.cast_unsigned())], Server::Thread);
    let may_wait = |by| target.connections.wait_max(by) < 0;
    assert!(!may_wait(Server::Thread) && may_wait(Server::Rank));
    target.connections.begin_rank();
    assert!(may_wait(Server::Thread) && !may_wait(Server::Rank));
}

#[test]
fn a_connection_that_ends_behind_several_requests_is_closed() {
    let target = TargetProcess::new((NEVER, NEVER), 1, 3);
    (0..3).for_each(|_| target.list.send(0));
    target.list.end(0);
    let ended = IN | libc::EPOLLRDHUP;
    target.take(vec![(0, ended.cast_unsigned())], Server::Thread);
    (0..4).for_each(|_| target.take(Vec::new(), Server::Thread));
    assert_eq!((target.list.answered(), target.connections.count()), (3, 0));
}

#[test]
fn a_server_sleeps_between_attempts_at_a_lock_that_is_held_for_long() {
    let target = TargetProcess::new((NEVER, NEVER), 2, 9);
    let await_lock = |awaits| target.list.change_state(|all| all.streams[0].awaits_lock = awaits);
    let event = |stream| target.take(vec![(stream, IN.cast_unsigned())], Server::Thread);
    let wait_max = || target.connections.wait_max(Server::Thread);
    await_lock(true);
    target.list.send(0);
    event(0);
    assert_eq!(wait_max(), 0, "at first it tries again at once");
    (0..100).for_each(|_| target.take(Vec::new(), Server::Thread));
    assert_eq!(wait_max(), 1);
    target.list.send(1);
    event(1);
    assert_eq!((target.list.answered(), wait_max()), (1, 0), "the holder may be served");
    await_lock(false);
    target.take(Vec::new(), Server::Thread);
    assert_eq!((target.list.answered(), wait_max()), (2, -1));
}
