//! Bytes between two processes of a node: a process that sees a store of another one sees what the
//! other one has put before. The window is memory that both map at the same address, so that both
//! transports of a node reach it.

use super::ranks::{Mapped, own_process, own_process_gathered};
use fompi_base::sync::{AtomicU64, Ordering};
use fompi_fabric::Way;
use fompi_fabric::remote::{Bytes, Remote, Runs};
use fompi_sys::child::Child;
use fompi_sys::page_bytes;
use fompi_sys::segment::Segment;

/// Bytes of the memory of each process.
fn memory_bytes() -> u64 {
    4 * page_bytes()
}
const ROUNDS: u64 = 300;
/// The bytes of a round: across the end of a page.
const FIRST: usize = 4000;
const LENGTH: usize = 600;

/// Whether the child sees all bytes of each round that it sees the number of.
fn later_stores_are_seen_behind_puts(put: impl Fn(Remote, &[u8])) {
    let segment = Segment::create(memory_bytes()).unwrap();
    segment.reserve(0, memory_bytes()).unwrap();
    let window = segment.map().unwrap();
    let at = |offset: usize| window.base().wrapping_add(offset);
    // SAFETY: aligned words of the window, which outlives the child.
    let [flag, answer] = [at(0), at(64)].map(|word| unsafe { &*word.cast::<AtomicU64>() });
    let reader = Child::working(|| {
        (1..=ROUNDS).all(|round| {
            // Acquire: pairs with the Release of the round, after its put.
            while flag.load(Ordering::Acquire) < round {
                std::thread::yield_now();
            }
            let is_of_round = |index: usize| {
                // SAFETY: inside of the window; the other process waits for the answer.
                unsafe { at(FIRST + index).read_volatile() == round as u8 }
            };
            let seen = (0..LENGTH).all(is_of_round);
            // Release: the bytes are read before they are written again.
            answer.store(round, Ordering::Release);
            seen
        })
    });
    for round in 1..=ROUNDS {
        let there = at(FIRST).expose_provenance() as u64;
        put(Remote { at: there, key: 0 }, &[round as u8; LENGTH]);
        // Release: a process that sees the round sees the put, too.
        flag.store(round, Ordering::Release);
        // Acquire: pairs with the Release of the answer.
        while reader.life().is_there() && answer.load(Ordering::Acquire) < round {
            std::thread::yield_now();
        }
    }
    assert!(reader.said_yes());
}

fn put_whole(peer: &impl Bytes, to: Remote, from: &[u8]) {
    // SAFETY: inside of the window; the bytes stay until the transfer is done.
    unsafe { peer.put(to, from.as_ptr(), from.len() as u64) }.unwrap();
    peer.flush().unwrap();
}

#[test]
fn a_later_store_is_seen_behind_a_put_by_load_and_store() {
    later_stores_are_seen_behind_puts(|to, from| put_whole(&Mapped, to, from));
}

#[test]
fn a_later_store_is_seen_behind_a_put_by_process_vm() {
    let own = own_process();
    later_stores_are_seen_behind_puts(|to, from| put_whole(&*own, to, from));
}

#[test]
fn a_later_store_is_seen_behind_gathered_puts_by_process_vm() {
    let own = own_process_gathered();
    later_stores_are_seen_behind_puts(|to, from| {
        // Two parts: the first put after a flush is made at once.
        let (first, second) = from.split_at(7);
        // SAFETY: inside of the window.
        unsafe { Bytes::put(&*own, to, first.as_ptr(), first.len() as u64) }.unwrap();
        put_whole(&*own, to.offset(7), second);
    });
}

#[test]
fn a_later_store_is_seen_behind_runs_by_process_vm() {
    let own = own_process();
    later_stores_are_seen_behind_puts(|to, from| {
        let mut runs = own.runs(to, Way::Put);
        // In runs of seven bytes, the last ones first.
        for at in (0..from.len()).step_by(7).rev() {
            let here = from.as_ptr().wrapping_add(at).cast_mut();
            let bytes = 7.min(from.len() - at) as u64;
            // SAFETY: inside of the window and of `from`.
            unsafe { runs.push(here, to.at + at as u64, bytes) };
        }
        // SAFETY: as above.
        unsafe { runs.finish() }.unwrap();
    });
}
