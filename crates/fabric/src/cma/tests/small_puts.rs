//! Small puts that are gathered.

use super::*;
use crate::cma::small_puts::SMALL_BYTES_MAX;
use crate::remote::Bytes as _;

/// A process with small puts of its own.
fn gathering(process: Process<'_>) -> Gathering<'_> {
    Gathering { process, small_puts: Some(Box::leak(Box::new(SmallPuts::default()))) }
}

/// Puts bytes later, and returns whether they were gathered.
fn put(to: Gathering<'_>, there: u64, from: &[u8]) -> bool {
    let mut prepared = false;
    // SAFETY: the tests put into pages of their own.
    unsafe {
        to.put_later(there, from.as_ptr(), from.len() as u64, || {
            prepared = true;
            &NoCount
        })
    }
    .unwrap();
    let may_wait = to.small_puts.is_some() && from.len() as u64 <= SMALL_BYTES_MAX;
    assert_eq!(prepared, may_wait, "a small put is prepared, and no other one");
    to.small_puts.is_some_and(SmallPuts::is_waiting)
}

#[test]
fn small_puts_wait_for_the_flush() {
    let pages = Pages::marked(1, 2);
    let to = gathering(own());
    for (round, puts) in [(1, 1), (2, 2), (3, 1)] {
        let before = pages.bytes(0, 16).to_vec();
        for n in 0..puts {
            assert!(put(to, pages.address(8 * n), &[round; 8]));
        }
        assert_eq!(pages.bytes(0, 16), before);
        to.flush().unwrap();
        assert_eq!(pages.bytes(0, 8 * puts), vec![round; 8 * puts]);
        assert!(!to.small_puts.unwrap().is_waiting());
    }
}

#[test]
fn a_put_that_is_not_small_never_waits() {
    let pages = Pages::marked(2, 2);
    let to = gathering(own());
    let large = [7; 1025];
    for at in [0, 2000] {
        assert!(!put(to, pages.address(at), &large));
        assert_eq!(pages.bytes(at, at + 1025), large);
    }
    assert!(put(to, pages.address(5000), &large[..1024]));
    assert!(!put(Gathering::nothing(own()), pages.address(0), &large[..1]));
}

#[test]
fn any_puts_arrive_in_their_order() {
    let mut state = 88172645463325252u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % below
    };
    let (here, there) = (Pages::marked(64, 1), Pages::marked(64, 2));
    let mut expected = marks(2).to_vec();
    let to = gathering(own());
    for round in 0..200 {
        let (bytes_max, span) = ([16, 300, 1100][round % 3], [500, 64 * 4096 - 1100][round % 2]);
        let mut at = random(span);
        for _ in 0..random(600) {
            let bytes = random(bytes_max);
            // Half of them follow the one before.
            at = if random(2) == 0 && at + bytes <= span { at } else { random(span) };
            let from = random(64 * 4096 - bytes);
            put(to, there.address(at), here.bytes(from, from + bytes));
            expected[at..at + bytes].copy_from_slice(here.bytes(from, from + bytes));
            at += bytes;
        }
        to.flush().unwrap();
        assert!(there.bytes(0, there.bytes) == expected, "round {round}");
    }
}

#[test]
fn all_that_is_sent_behind_a_put_finds_it_there() {
    let pages = Pages::marked(2, 2);
    let to = gathering(own());
    let two = |byte: u8| {
        put(to, pages.address(0), &[byte; 8]);
        put(to, pages.address(8), &[byte; 8]);
    };
    let second = || pages.bytes(8, 16).to_vec();
    let (mut got, large) = ([0; 4], [9; 2000]);
    two(1);
    // SAFETY: a buffer of four bytes.
    unsafe { to.get(got.as_mut_ptr(), pages.address(12), 4) }.unwrap();
    assert_eq!((got.to_vec(), second()), (vec![1; 4], vec![1; 8]));
    two(2);
    put(to, pages.address(12), &large);
    assert_eq!(second(), [2, 2, 2, 2, 9, 9, 9, 9]);
    two(3);
    let mut runs = to.runs(Way::Put);
    assert_eq!(second(), [3; 8]);
    // SAFETY: no runs.
    unsafe { runs.finish() }.unwrap();
    two(4);
    to.send();
    assert_eq!(second(), [4; 8]);
    // More runs than a list has, then more bytes than the buffer.
    two(5);
    (0..128).for_each(|n| assert!(put(to, pages.address(4096 + 2 * n), &[0])));
    assert_eq!(second(), [5; 8]);
    two(6);
    (0..32).for_each(|_| assert!(put(to, pages.address(4096), &large[..1024])));
    assert_eq!(second(), [6; 8]);
}

#[test]
fn puts_that_follow_each_other_are_one_run() {
    let pages = Pages::marked(8, 2);
    let to = gathering(own());
    (1..2000).for_each(|n| assert!(put(to, pages.address(8 * n), &[n as u8; 8])));
    assert!(are_marks(pages.bytes(8, 32), 2, 8), "sent as 2000 runs");
    to.flush().unwrap();
    (1..2000).for_each(|n| assert_eq!(pages.bytes(8 * n, 8 * n + 8), [n as u8; 8]));
}

#[test]
fn the_answer_of_the_next_flush_is_the_first_error_and_the_other_puts_arrive() {
    let p = page_bytes() as usize;
    for fails_early in [false, true] {
        let pages = Pages::marked(3, 2);
        pages.protect(1, libc::PROT_READ);
        let to = gathering(own());
        for at in [0, 2 * p - 4, 8, p + 100, 2 * p + 9, 2 * p + 11] {
            put(to, pages.address(at), &[5; 2]);
        }
        if fails_early {
            to.send();
            put(to, pages.address(40), &[6; 2]);
        }
        let error =
            Error::Fault { rank: RANK.in_error_of_transport(), address: pages.address(2 * p - 4) };
        assert_eq!(to.flush(), Err(error));
        assert_eq!(to.flush(), Ok(()));
        for at in [0, 8, 2 * p + 9, 2 * p + 11] {
            assert_eq!(pages.bytes(at, at + 2), [5; 2]);
        }
        assert!(!fails_early || pages.bytes(40, 42) == [6; 2]);
        assert!(are_marks(pages.bytes(p, 2 * p), 2, p));
    }
}

#[test]
fn a_run_that_begins_before_a_bad_page_arrives_up_to_it() {
    let p = page_bytes() as usize;
    let pages = Pages::marked(2, 2);
    pages.protect(1, libc::PROT_NONE);
    let to = gathering(own());
    put(to, pages.address(0), &[5; 2]);
    (0..4).for_each(|n| assert!(put(to, pages.address(p - 6 + 4 * n), &[n as u8; 4])));
    let error = Error::Fault { rank: RANK.in_error_of_transport(), address: pages.address(p) };
    assert_eq!(to.flush(), Err(error));
    assert_eq!(pages.bytes(p - 6, p), [0, 0, 0, 0, 1, 1]);
}

#[test]
fn puts_to_a_process_that_died_fail_in_the_flush() {
    let pages = Pages::marked(1, 2);
    let child = Child::stopped(|| {});
    let to = gathering(target(&child));
    put(to, pages.address(0), &[1; 8]);
    assert!(put(to, pages.address(8), &[2; 8]));
    child.kill();
    let died = Error::Died { rank: RANK.in_error_of_transport(), pid: to.process.life.mark().pid };
    assert_eq!(to.flush(), Err(died));
    assert_eq!(to.flush(), Ok(()));
}

#[test]
fn a_flush_of_one_thread_completes_the_puts_of_others_that_it_has_met() {
    const THREADS: usize = 3;
    let pages = Pages::marked(THREADS, 2);
    let to = gathering(own());
    let all = std::sync::Barrier::new(THREADS);
    let work = |thread: usize| {
        let at = |of: usize, n: usize| of * page_bytes() as usize + n * 11 % 200 * 8;
        for round in 0..200u64 {
            for n in 0..100 {
                // Some threads flush while others put.
                if n % 17 == thread {
                    to.flush().unwrap();
                }
                put(to, pages.address(at(thread, n)), &(round + n as u64).to_ne_bytes());
            }
            all.wait();
            if round as usize % THREADS == thread {
                to.flush().unwrap();
                for (of, n) in (0..THREADS).flat_map(|of| (0..100).map(move |n| (of, n))) {
                    let seen = pages.bytes(at(of, n), at(of, n) + 8);
                    assert_eq!(seen, (round + n as u64).to_ne_bytes(), "put {n} of {of}");
                }
            }
            all.wait();
        }
    };
    std::thread::scope(|scope| {
        (0..THREADS).for_each(|thread| {
            let work = &work;
            scope.spawn(move || work(thread));
        });
    });
}

#[test]
fn a_flush_waits_for_what_another_thread_is_sending() {
    let pages = Pages::marked(2, 2);
    let to = gathering(own());
    for round in 1..500u32 {
        let value = round.to_ne_bytes();
        put(to, pages.address(0), &value);
        let at = |n: usize| 8 + 16 * n;
        (0..120).for_each(|n| assert!(put(to, pages.address(at(n)), &value)));
        // SAFETY: an aligned number in the pages.
        let seen = |n: usize| unsafe { pages.at(at(n)).cast::<u32>().read_volatile() };
        std::thread::scope(|scope| {
            scope.spawn(|| to.send());
            while seen(0) != round {
                core::hint::spin_loop();
            }
            to.flush().unwrap();
            (0..120).rev().for_each(|n| assert_eq!(seen(n), round));
        });
    }
}

#[test]
fn no_bytes_wait_for_nothing() {
    let pages = Pages::marked(1, 2);
    let to = gathering(own());
    for _ in 0..3 {
        put(to, 0, &[]);
    }
    put(to, pages.address(4), &[3; 4]);
    to.flush().unwrap();
    assert_eq!(pages.bytes(4, 8), [3; 4]);
}
