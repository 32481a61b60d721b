//! Tests of queue pairs that other processes send to, and of their end.

use super::*;

#[test]
fn a_process_that_has_gone_keeps_nothing_at_its_target() {
    // More than are pinged at once.
    const MANY: u64 = 40;
    let target = Side::new(on_fake, 1);
    let accepted = || target.wire.counts().accepted;
    let mut origins: Vec<Wire> = (0..MANY).map(|_| on_fake()).collect();
    for origin in &origins {
        target.seen_by(origin).fetch(target.at(0), Fetch::Add(1)).unwrap();
    }
    assert_eq!(accepted(), MANY);
    let stay = origins.split_off(37);
    drop(origins);
    until("those that have gone", || accepted() == 3);
    for origin in &stay {
        target.seen_by(origin).fetch(target.at(0), Fetch::Add(1)).unwrap();
    }
    assert_eq!((target.word(0), accepted()), (MANY + 3, 3));
    drop(stay);
    until("all have gone", || accepted() == 0);
}

#[test]
fn a_process_that_answers_stays() {
    let (origin, target) = (on_fake(), Side::new(on_fake, 1));
    let peer = target.seen_by(&origin);
    assert_eq!(peer.read(target.at(0)), Ok(0));
    // Each process that comes and goes makes the target ping all of them.
    for _ in 0..3 {
        let other = on_fake();
        target.seen_by(&other).read(target.at(0)).unwrap();
        drop(other);
        until("the other has gone", || target.wire.counts().accepted == 1);
    }
    assert_eq!(peer.fetch(target.at(0), Fetch::Add(1)), Ok(0));
}
