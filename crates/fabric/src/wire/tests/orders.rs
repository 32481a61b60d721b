//! Tests of devices that keep less order than a reliable connection: the queue's rule makes them
//! right, and they go wrong if they declare more order than they keep.

use super::*;

/// A device that keeps less than it says.
fn silent(says: DeviceOrder, order: DeviceOrder) -> Wire {
    on_profile(&Profile { order, ..Profile::keeping(says) }, &Verbs::default()).unwrap()
}

fn silent_reliable() -> Wire {
    silent(DeviceOrder::ONE_AT_A_TIME, DeviceOrder::RELIABLE)
}

fn silent_write_after_write() -> Wire {
    silent(DeviceOrder::RELIABLE, DeviceOrder::WRITE_AFTER_WRITE)
}

fn silent_unordered() -> Wire {
    silent(DeviceOrder::RELIABLE, DeviceOrder::NONE)
}

/// Number of runs of a step if all must be right, and if one must be wrong.
const RUNS: usize = 5;
const RUNS_UNTIL_WRONG: usize = 400;
/// Number of the words that are put at once.
const WORDS: usize = 8;

/// A step that relies on an order, many times. Returns whether it was always right.
type Step = fn(&Steps) -> bool;

/// An origin, another one, and the target.
struct Steps {
    peer: Arc<Peer>,
    other: Arc<Peer>,
    target: Side,
    _origins: [Wire; 2],
}

impl Steps {
    fn new(open: Open) -> Steps {
        let (origin, another, target) = (open(), open(), Side::new(open, WORDS + 4));
        let (peer, other) = (target.seen_by(&origin), target.seen_by(&another));
        Steps { peer, other, target, _origins: [origin, another] }
    }
}

/// Puts to many words, so that some puts are under way when the next request is sent.
fn put_many(Steps { peer, target, .. }: &Steps, value: u64) {
    (0..WORDS).for_each(|index| put(peer, target.at(index), &[value]).unwrap());
}

fn are_there(Steps { target, .. }: &Steps, value: u64) -> bool {
    (0..WORDS).all(|index| target.word(index) == value)
}

/// Whether a step is right on a device, as far as this number of runs shows.
fn is_right(open: Open, step: Step, runs: usize) -> bool {
    let steps = Steps::new(open);
    (0..runs).all(|_| step(&steps))
}

fn a_get_behind_a_put(Steps { peer, target, .. }: &Steps) -> bool {
    (1..=100).all(|round| {
        put(peer, target.at(0), &[round]).unwrap();
        peer.order();
        let mut back = [0];
        get(peer, &mut back, target.at(0)).unwrap();
        peer.flush().unwrap();
        back == [round]
    })
}

fn a_put_behind_a_put(Steps { peer, target, .. }: &Steps) -> bool {
    (1..=100).all(|round| {
        put(peer, target.at(0), &[0]).unwrap();
        peer.order();
        put(peer, target.at(0), &[round]).unwrap();
        peer.flush().unwrap();
        target.word(0) == round
    })
}

fn an_addition_behind_a_put(Steps { peer, target, .. }: &Steps) -> bool {
    (1..=100).all(|round| {
        put(peer, target.at(0), &[round]).unwrap();
        peer.order_puts();
        peer.post_all(1, |_| (target.at(0), 1)).unwrap();
        peer.flush().unwrap();
        target.word(0) == round + 1
    })
}

fn a_put_behind_an_addition(Steps { peer, target, .. }: &Steps) -> bool {
    (1..=100).all(|round| {
        peer.post(target.at(0), 1).unwrap();
        peer.order();
        put(peer, target.at(0), &[round]).unwrap();
        peer.flush().unwrap();
        target.word(0) == round
    })
}

/// With one wait for both.
fn a_read_behind_an_addition(Steps { peer, target, .. }: &Steps) -> bool {
    (0..100).all(|_| {
        let at = target.at(0);
        let (before, read) = peer.fetch_and_read(at, Fetch::Add(1), at).unwrap();
        read == before + 1
    })
}

fn an_answer_behind_puts(steps: &Steps) -> bool {
    let Steps { peer, target, .. } = steps;
    (1..=100).all(|round| {
        put_many(steps, round);
        peer.order();
        peer.fetch(target.at(WORDS), Fetch::Add(1)).unwrap();
        are_there(steps, round)
    })
}

fn a_flush_behind_puts(steps: &Steps) -> bool {
    (1..=100).all(|round| {
        put_many(steps, round);
        steps.peer.flush().unwrap();
        are_there(steps, round)
    })
}

/// The get or the addition, which no order puts after the puts, need not prove them.
fn a_flush_behind_puts_and_more(steps: &Steps) -> bool {
    let Steps { peer, target, .. } = steps;
    (1..=100).all(|round| {
        put_many(steps, round);
        let mut back = [0];
        if round % 2 == 0 {
            get(peer, &mut back, target.at(WORDS)).unwrap();
        } else {
            peer.post(target.at(WORDS), 1).unwrap();
        }
        peer.flush().unwrap();
        are_there(steps, round)
    })
}

/// Another process adds to the second word first.
fn reads_in_their_order(Steps { peer, other, target, .. }: &Steps) -> bool {
    (0..100).all(|_| {
        other.post(target.at(WORDS + 1), 1).unwrap();
        other.order();
        other.post(target.at(WORDS), 1).unwrap();
        let first = peer.begin_read(target.at(WORDS)).unwrap();
        peer.order_reads();
        let second = peer.begin_read(target.at(WORDS + 1)).unwrap();
        let [first, second] = [first, second].map(|ticket| peer.finish(ticket).unwrap());
        other.flush().unwrap();
        second >= first
    })
}

const STEPS: [Step; 9] = [
    a_get_behind_a_put,
    a_put_behind_a_put,
    an_addition_behind_a_put,
    a_put_behind_an_addition,
    a_read_behind_an_addition,
    an_answer_behind_puts,
    a_flush_behind_puts,
    a_flush_behind_puts_and_more,
    reads_in_their_order,
];

fn all_are_right(open: Open) {
    assert_eq!(STEPS.map(|step| is_right(open, step, RUNS)), [true; 9]);
}

#[test]
fn every_step_is_right_on_a_reliable_connection() {
    all_are_right(on_fake);
}

#[test]
fn every_step_is_right_where_reads_overtake_writes() {
    all_are_right(on_write_after_write);
}

#[test]
fn every_step_is_right_where_all_overtake_all() {
    all_are_right(on_unordered);
}

#[test]
fn a_device_that_keeps_less_than_it_says_is_noticed() {
    let behind_atomics: &[Step] = &[a_put_behind_an_addition, a_read_behind_an_addition];
    let of_reads: &[Step] = &[
        a_get_behind_a_put,
        a_flush_behind_puts,
        a_flush_behind_puts_and_more,
        reads_in_their_order,
    ];
    let of_changes: &[Step] =
        &[a_put_behind_a_put, an_addition_behind_a_put, an_answer_behind_puts];
    let devices: [(Open, &[&[Step]]); 3] = [
        (silent_reliable, &[behind_atomics]),
        (silent_write_after_write, &[of_reads]),
        (silent_unordered, &[of_reads, of_changes]),
    ];
    for (open, wrong) in devices {
        let right = |step: &Step| is_right(open, *step, RUNS_UNTIL_WRONG);
        let right: Vec<bool> = wrong.concat().iter().map(right).collect();
        assert!(!right.contains(&true), "{right:?}");
    }
}

#[test]
fn puts_and_posts_are_not_fenced_where_only_reads_overtake() {
    let (origin, target) = (on_write_after_write(), Side::new(on_write_after_write, 8));
    let peer = target.seen_by(&origin);
    let fenced = || origin.counts().kinds.fenced;
    for _ in 0..3 {
        put(&peer, target.at(0), &[1]).unwrap();
        peer.order();
    }
    peer.fetch(target.at(1), Fetch::Add(1)).unwrap();
    peer.flush().unwrap();
    assert_eq!((fenced(), origin.counts().kinds.proofs), (0, 0));
    put(&peer, target.at(0), &[1]).unwrap();
    peer.flush().unwrap();
    assert_eq!((fenced(), origin.counts().kinds.proofs), (1, 1));
}
