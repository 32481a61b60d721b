//! Tests that depend on the kind of device, or on a device that refuses.

use super::super::atomics::Ticket;
use super::*;
use crate::sys::ibverbs::Gid;
use crate::sys::ibverbs::verbs::IBV_ATOMIC_GLOB;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

fn round_trip(one: &Wire, other: &Wire) {
    let words = vec![0u64; 2000];
    let exposed = other.expose(words.as_ptr().cast_mut().cast(), 16_000).unwrap();
    let peer = one.connect(&address(other));
    let (data, mut back) = (numbers(2000, 0), vec![0; 2000]);
    for count in [1, 20, 2000] {
        put(&peer, exposed.remote(), &data[..count]).unwrap();
        peer.flush().unwrap();
        get(&peer, &mut back[..count], exposed.remote()).unwrap();
        peer.flush_local().unwrap();
        assert!(data[..count] == back[..count]);
    }
}

#[test]
fn infiniband_is_addressed_by_its_lid() {
    let profile = Profile { ethernet: false, gids: vec![(Gid([1; 16]), 0)], ..Profile::default() };
    let settings = Verbs::default();
    // The device refuses a wrong LID, and a global header that is not needed.
    round_trip(
        &on_profile(&profile, &settings).unwrap(),
        &on_profile(&profile, &settings).unwrap(),
    );
}

#[test]
fn a_device_without_room_for_inline_data_will_do() {
    let profile = Profile { inline_max: 0, send_max: 3, ..Profile::default() };
    let origin = on_profile(&profile, &Verbs::default()).unwrap();
    round_trip(&origin, &on_fake());
    assert_eq!(origin.counts().kinds.inline, 0);
}

#[test]
fn both_sides_must_be_of_one_kind() {
    let profile = Profile { ethernet: false, ..Profile::default() };
    let (one, other) = (on_profile(&profile, &Verbs::default()).unwrap(), Side::new(on_fake, 1));
    let error = one.connect(&address(&other.wire)).read(other.at(0)).unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert!(error.to_string().contains("it uses RoCE, this process InfiniBand"), "{error}");
    assert_eq!(other.wire.counts().accepted, 0, "it has made no end");
}

#[test]
fn a_device_says_whether_its_atomics_are_those_of_the_processor() {
    let coherent = Profile { atomics: IBV_ATOMIC_GLOB, ..Profile::default() };
    assert!(on_profile(&coherent, &Verbs::default()).unwrap().is_coherent());
    assert!(!on_fake().is_coherent());
}

#[test]
fn memory_that_is_refused_is_told_with_its_size() {
    let profile = Profile { locked_max: 2 << 20, ..Profile::default() };
    let (origin, target) =
        (on_profile(&profile, &Verbs::default()).unwrap(), Side::new(on_fake, 1 << 18));
    let mut words = numbers(1 << 18, 0);
    let bytes = 8 << 18;
    let refused = origin.expose(words.as_mut_ptr().cast(), bytes).err().unwrap();
    let Error::Registration { bytes: asked, errno, .. } = refused else { panic!("{refused}") };
    assert_eq!((asked, errno), (bytes, libc::ENOMEM));
    let peer = target.seen_by(&origin);
    let error = put(&peer, target.at(0), &words).unwrap_err();
    assert!(matches!(error, Error::Registration { .. }), "{error}");
    // The peer is not lost.
    put(&peer, target.at(0), &words[..1000]).unwrap();
    peer.flush().unwrap();
    assert_eq!(target.word(999), words[999]);
}

#[test]
fn a_process_whose_device_is_gone_is_an_error() {
    let (origin, target) = (on_fake(), Side::new(on_fake, 8));
    let peer = target.seen_by(&origin);
    let at = target.at(0);
    peer.read(at).unwrap();
    drop(target);
    let error = put(&peer, at, &[1]).and_then(|()| peer.flush()).unwrap_err();
    assert!(error.to_string().contains("transport retry counter exceeded"), "{error}");
}

#[test]
fn a_flush_sends_no_more_than_it_needs() {
    let (origin, target) = (on_fake(), Side::new(on_fake, 64));
    let peer = target.seen_by(&origin);
    let proofs = || origin.counts().kinds.proofs;
    peer.post(target.at(0), 1).unwrap();
    peer.flush().unwrap();
    assert_eq!(proofs(), 0, "its own answer says it");
    put(&peer, target.at(1), &[1]).unwrap();
    peer.fetch(target.at(0), Fetch::Add(1)).unwrap();
    peer.flush().unwrap();
    assert_eq!(proofs(), 0, "the answer after it proves it");
    put(&peer, target.at(1), &[1]).unwrap();
    peer.flush().unwrap();
    peer.flush().unwrap();
    together(&[&peer]).flush().unwrap();
    assert_eq!(proofs(), 1, "once");
    let mut back = [0];
    get(&peer, &mut back, target.at(1)).unwrap();
    peer.flush().unwrap();
    assert_eq!((proofs(), back), (1, [1]));
    for _ in 0..3 {
        put(&peer, target.at(1), &[1]).unwrap();
        peer.order();
    }
    peer.flush().unwrap();
    assert_eq!((proofs(), origin.counts().kinds.fenced), (2, 0), "puts need no fence");
}

#[test]
fn a_peer_that_nobody_needs_is_forgotten_when_it_is_gone() {
    let (origin, target, other) = (on_fake(), Side::new(on_fake, 1), Side::new(on_fake, 1));
    let known = || origin.core.peers.read().len();
    target.seen_by(&origin).read(target.at(0)).unwrap();
    other.seen_by(&origin);
    assert_eq!(known(), 2);
    // The process is still there, so its peer is kept; the other one was never contacted.
    drop(Side::new(on_fake, 1).seen_by(&origin));
    assert_eq!(known(), 2);
    assert_eq!(origin.counts().contacted, 1);
    drop(target);
    until("the loss", || {
        drop(Side::new(on_fake, 1).seen_by(&origin));
        origin.progress();
        known() == 1
    });
    assert_eq!(origin.counts().contacted, 0);
}

#[test]
fn registrations_end_with_a_connection_that_is_lost() {
    let (origin, target) = (on_fake(), Side::new(on_fake, 1 << 14));
    let peer = target.seen_by(&origin);
    let data = numbers(1 << 14, 3);
    put(&peer, target.at(0), &data).unwrap();
    peer.flush().unwrap();
    let wrong = Remote { key: target.at(0).key ^ 0x5500, ..target.at(0) };
    put(&peer, wrong, &data).and_then(|()| peer.flush()).unwrap_err();
    assert_eq!(origin.counts().regions, 0, "the user knows that the buffer is free");
}

#[test]
fn a_shortage_at_first_contact_is_an_error_of_that_call_alone() {
    // The first with room for inline data, the second without.
    let profile = Profile { pairs_refused: 2, ..Profile::default() };
    let (origin, target) =
        (on_profile(&profile, &Verbs::default()).unwrap(), Side::new(on_fake, 1));
    let peer = target.seen_by(&origin);
    let error = peer.read(target.at(0)).unwrap_err();
    assert_eq!(error, Error::System { call: "ibv_create_qp", errno: libc::ENOMEM });
    assert_eq!((peer.flush(), peer.check()), (Ok(()), Ok(())));
    assert_eq!(peer.read(target.at(0)), Ok(0));
}

#[test]
fn a_device_that_has_failed_is_an_error_of_all_that_wait_for_it() {
    let (profile, target) = (Profile::default(), Side::new(on_fake, 1));
    let origin = on_profile(&profile, &Verbs::default()).unwrap();
    let peer = target.seen_by(&origin);
    peer.read(target.at(0)).unwrap();
    // Relaxed: nothing else depends on it.
    profile.failed.store(true, Ordering::Relaxed);
    let error = peer.read(target.at(0)).unwrap_err();
    assert!(error.to_string().contains("the device of this process has failed"), "{error}");
    assert_eq!(peer.flush().unwrap_err(), error);
}

/// Makes a process on a device that executes requests in order, one at a time.
fn on_soft_roce() -> Wire {
    keeping(DeviceOrder::ONE_AT_A_TIME)
}

#[test]
fn a_target_that_does_requests_in_their_order_needs_no_fence_behind_atomics() {
    let ways: [(Open, Open, u64); 2] = [(on_fake, on_soft_roce, 0), (on_soft_roce, on_fake, 1)];
    for (open, opens, fenced) in ways {
        let (origin, target) = (open(), Side::new(opens, 2));
        let peer = target.seen_by(&origin);
        let ticket = peer.begin(target.at(0), Fetch::Add(1)).unwrap();
        peer.order();
        peer.post(target.at(1), 1).unwrap();
        peer.finish(ticket).unwrap();
        assert_eq!(origin.counts().kinds.fenced, fenced);
        let mut got = [0];
        get(&peer, &mut got, target.at(0)).unwrap();
        peer.order();
        peer.post(target.at(0), 1).unwrap();
        peer.flush().unwrap();
        assert_eq!((origin.counts().kinds.fenced, got), (fenced + 1, [1]));
    }
}

/// Gets a word by a request that the device forgets, and sends nothing after it.
fn get_forgotten(peer: &Peer, to: &mut [u64; 1], at: Remote) -> Ticket {
    let ticket = peer.begin(at, Fetch::Add(1)).unwrap();
    peer.order();
    get(peer, to, at).unwrap();
    ticket
}

#[test]
fn a_device_that_forgets_is_pinged_by_every_wait() {
    let profile = Profile { forgets: true, ..Profile::default() };
    let origin = on_profile(&profile, &Verbs::default()).unwrap();
    let (near, far) = (Side::new(on_fake, 1000), Side::new(on_fake, 1000));
    let (peer, other) = (near.seen_by(&origin), far.seen_by(&origin));
    let (mut got, mut tickets) = ([[0]; 3], Vec::new());
    let pings = || origin.counts().kinds.pings;
    // A wait for the request itself.
    tickets.push(get_forgotten(&peer, &mut got[0], near.at(0)));
    peer.flush_local().unwrap();
    assert!(pings() >= 1);
    // A wait for the last block, which that request holds.
    let blocks = &origin.core.blocks;
    let take = |left: usize| -> Vec<u32> {
        let surplus = blocks.free() - left;
        (0..surplus).map(|_| blocks.try_take().unwrap()).collect()
    };
    let (before, taken) = (pings(), take(1));
    tickets.push(get_forgotten(&peer, &mut got[1], near.at(0)));
    let data = numbers(1000, 0);
    put(&other, far.at(0), &data).unwrap();
    other.flush().unwrap();
    taken.into_iter().for_each(|block| blocks.give_back(block));
    assert!(pings() > before && far.word(999) == data[999]);
    // A wait for a block that may be a bounce buffer.
    let (before, taken) = (pings(), take(pool::BLOCKS / 2 + 1));
    tickets.push(get_forgotten(&peer, &mut got[2], near.at(0)));
    drop(other.bounce_buffer());
    taken.into_iter().for_each(|block| blocks.give_back(block));
    assert!(pings() > before);
    let found: Vec<_> = tickets.into_iter().map(|ticket| peer.finish(ticket).unwrap()).collect();
    assert_eq!((found, got), (vec![0, 1, 2], [[1], [2], [3]]));
}

#[test]
fn a_device_that_forgets_is_pinged_behind_a_full_queue() {
    let profile = Profile { forgets: true, send_max: 16, ..Profile::default() };
    let (origin, target) =
        (on_profile(&profile, &Verbs::default()).unwrap(), Side::new(on_fake, 16));
    let peer = target.seen_by(&origin);
    for _ in 0..3 {
        let ticket = peer.begin(target.at(0), Fetch::Add(1)).unwrap();
        peer.order();
        peer.finish(ticket).unwrap();
        let counts = || origin.counts().kinds;
        let before = counts();
        // In one chain, so that the queue is full when the device forgets: two places are for
        // pings.
        peer.post_all(14, |index| (target.at(index), 1)).unwrap();
        peer.post(target.at(15), 1).unwrap();
        let now = counts();
        assert_eq!((now.fenced, now.waits), (before.fenced + 1, before.waits + 1));
        assert!(now.pings > before.pings);
        peer.flush().unwrap();
    }
    assert_eq!((target.word(0), target.word(13), target.word(15)), (6, 3, 3));
}

#[test]
fn a_process_that_did_not_answer_in_time_is_called_again() {
    let (origin, target) = (on_fake(), Side::new(on_fake, 1));
    let contact = target.wire.contact().unwrap();
    origin.core.identity.set_contact_limit(Duration::from_secs(2));
    // A socket that accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut wrong = contact;
    wrong.0[1] = u64::from(silent.local_addr().unwrap().port()) << 32 | contact.0[1] & 0xffff_ffff;
    let peer = origin.connect(&(wrong, secret()));
    let error = peer.read(target.at(0)).unwrap_err();
    assert!(matches!(error, Error::Unanswered { .. }), "{error}");
    assert_eq!((peer.check(), peer.flush()), (Ok(()), Ok(())), "it is not lost");
    origin.core.identity.set_contact_limit(Duration::from_secs(60));
    // The process answers again: connections to the port are forwarded to it.
    let place = contact.addresses()[0];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Connections that the origin has given up come first.
            while let Ok((mut ours, _)) = silent.accept() {
                let mut theirs = TcpStream::connect(place).unwrap();
                let mut back = (theirs.try_clone().unwrap(), ours.try_clone().unwrap());
                let answers = scope.spawn(move || std::io::copy(&mut back.0, &mut back.1));
                let asked = std::io::copy(&mut ours, &mut theirs).unwrap_or(0);
                let _ = theirs.shutdown(Shutdown::Write);
                let _ = answers.join();
                if asked > 48 {
                    break;
                }
            }
        });
        assert_eq!(peer.read(target.at(0)), Ok(0));
    });
}
