//! Requests for pages that the target's program has unmapped: the peer stays, later requests are
//! carried out, and the origin learns of the refusal once.

use super::*;
use crate::remote::AtTarget;
use crate::sys::page_bytes;

/// Pages that may be used, before one that may not.
const GOOD: u64 = 32;

/// Memory of the program at a target, with its last page unmapped.
fn pages(target: &Wire) -> (Exposed, *const u64) {
    let (bytes, access) =
        (((GOOD + 1) * page_bytes()) as usize, libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, whose last page nothing uses. It stays until the end.
    let base = unsafe {
        let base = libc::mmap(core::ptr::null_mut(), bytes, access, flags, -1, 0);
        assert_ne!(base, libc::MAP_FAILED);
        assert_eq!(
            libc::mprotect(base.byte_add((GOOD * page_bytes()) as usize), 1, libc::PROT_NONE),
            0
        );
        base
    };
    (target.expose_of_program(base.cast(), bytes as u64).unwrap(), base.cast())
}

/// Fails unless the peer has refused a request, and the origin learns of it once.
fn is_refused(origin: &Wire, peers: &Peers<usize>) {
    assert!(origin.has_refusals());
    let error = peers.take_refusals().unwrap_err();
    assert!(matches!(error, Error::NoAccess { .. }), "{error}");
    assert_eq!(error.class(), Class::RmaRange);
    assert!(!origin.has_refusals());
    assert_eq!(peers.take_refusals(), Ok(()));
}

#[test]
fn a_page_that_is_gone_is_an_error_and_no_loss() {
    let (origin, target) = (on_tcp(), on_tcp());
    let (exposed, first) = pages(&target);
    let (good, gone) =
        (exposed.remote(), exposed.remote().offset((GOOD * page_bytes()) as i64 + 8));
    let peer = origin.connect(&address(&target));
    let peers = together(&[&peer]);
    let (data, long) = ([7u64; 2], vec![8u64; 100_000 / 8]);
    let mut got = [0; 2];
    for round in 0..3u64 {
        put(&peer, gone, &data).unwrap();
        put(&peer, good.offset(8), &[round + 1]).unwrap();
        peer.flush().unwrap();
        is_refused(&origin, &peers);
        put(&peer, gone.offset(-99_992), &long).unwrap();
        peer.flush().unwrap();
        is_refused(&origin, &peers);
        get(&peer, &mut got, gone).unwrap();
        peer.flush().unwrap();
        is_refused(&origin, &peers);
        peer.fetch(gone, Fetch::Add(1)).unwrap();
        is_refused(&origin, &peers);
        let mut old = [7u64, 7];
        let [one, other] = old.each_mut().map(|old| core::ptr::from_mut(old).cast());
        // SAFETY: no page of this process; the results stay.
        unsafe {
            peer.compare_and_swap((gone, 8), (0, 1), one).unwrap();
            peer.compare_and_swap((good.offset(16), 4), (round, round + 1), other).unwrap();
        }
        peer.flush_local().unwrap();
        is_refused(&origin, &peers);
        assert_eq!(old, [7, round], "of the second one, four bytes");
        assert_eq!(peer.fetch(good, Fetch::Add(1)).unwrap(), round);
        // SAFETY: a word of the mapping.
        assert_eq!(unsafe { first.add(1).read_volatile() }, round + 1);
    }
    assert_eq!(peers.check(), Ok(()));
}
