//! Long puts over TCP: the stream copies their bytes, so most of them need no answer.

use super::super::pending::Pending;
use super::*;

const WORDS: usize = 1 << 20;
const PUTS: usize = 4;

/// Begins puts that fill the socket, of a buffer with this number in each word.
fn put_all(peer: &Peer, target: &Side, from: &mut [u64], number: u64) {
    from.fill(number);
    for index in 0..PUTS {
        put(peer, target.at(index * WORDS), from).unwrap();
    }
}

fn has_only(target: &Side, number: u64) -> bool {
    (0..PUTS * WORDS).all(|index| target.word(index) == number)
}

/// Puts, waits by `wait`, changes the buffer, and finds what it had before at the target. `wait`
/// gets the number of the last request before the puts.
fn check_reuse_after(wait: impl Fn(&Arc<Peer>, u64)) {
    let (origin, target) = (on_tcp(), Side::new(on_tcp, PUTS * WORDS));
    let (peer, mut from) = (target.seen_by(&origin), vec![0; WORDS]);
    for number in 1..4 {
        let before = peer.lent();
        put_all(&peer, &target, &mut from, number);
        wait(&peer, before);
        from.fill(7);
        peer.flush().unwrap();
        assert!(has_only(&target, number));
    }
}

#[test]
fn the_stream_has_taken_the_bytes_when_a_local_flush_returns() {
    check_reuse_after(|peer, _| peer.flush_local().unwrap());
}

#[test]
fn a_request_of_a_long_put_is_complete_when_the_stream_has_taken_its_bytes() {
    check_reuse_after(|peer, before| {
        let mut pending = Pending::of(peer, before).unwrap();
        until("the puts", || pending.as_mut().is_none_or(|all| all.is_done().unwrap()));
    });
}

#[test]
fn a_get_behind_long_puts_has_arrived_when_a_local_flush_returns() {
    let (origin, target) = (on_tcp(), Side::new(on_tcp, PUTS * WORDS));
    let (peer, mut from, mut to) = (target.seen_by(&origin), vec![0; WORDS], vec![0; WORDS]);
    for number in 1..4 {
        put_all(&peer, &target, &mut from, number);
        get(&peer, &mut to, target.at(0)).unwrap();
        put(&peer, target.at(WORDS), &from).unwrap();
        peer.flush_local().unwrap();
        assert!(to == from);
    }
    peer.flush().unwrap();
}

#[test]
fn of_long_puts_in_a_row_the_first_one_is_answered() {
    let (origin, target) = (on_tcp(), Side::new(on_tcp, 4096));
    let (peer, from) = (target.seen_by(&origin), vec![1; 4096]);
    let last_answered = || peer.with(|queue| Ok(queue.last_signaled())).unwrap();
    for _ in 0..3 {
        put(&peer, target.at(0), &from).unwrap();
        let first = last_answered();
        assert_eq!(first, peer.written());
        for _ in 0..8 {
            put(&peer, target.at(0), &from).unwrap();
            assert_eq!(last_answered(), first);
        }
        let proofs = origin.counts().kinds.proofs;
        peer.flush().unwrap();
        assert_eq!(origin.counts().kinds.proofs, proofs + 1);
        put(&peer, target.at(0), &from).unwrap();
        peer.flush().unwrap();
        assert_eq!(origin.counts().kinds.proofs, proofs + 1);
    }
}
