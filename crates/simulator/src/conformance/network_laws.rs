//! The laws of transports between nodes (17 to 20 and 26 of [`fompi_fabric::remote`]), as three
//! ranks see them.

use super::ranks::{Exposing, RANKS};
use fompi_fabric::Fetch;
use fompi_fabric::remote::{BOUNCE_BYTES, Behind, BounceBuffer, Bytes, Network, Remote};

/// A rank of a test on a transport between nodes.
pub trait Networked: Exposing<Peer: Network> {}

impl<E: Exposing<Peer: Network>> Networked for E {}

/// The rank after this one, and where its word `index` is.
fn next<E: Networked>(rank: &E, index: usize) -> (&E::Peer, Remote) {
    word(rank, (rank.rank() + 1) % RANKS, index)
}

/// A rank, and where its word `index` is.
fn word<E: Networked>(rank: &E, of: u32, index: usize) -> (&E::Peer, Remote) {
    let (peer, memory) = rank.reach(of);
    (peer, memory.offset(8 * index as i64))
}

/// Word `index` of this rank.
fn own<E: Networked>(rank: &E, index: usize) -> u64 {
    let mut bytes = [0; 8];
    rank.load(8 * index, &mut bytes);
    u64::from_ne_bytes(bytes)
}

pub fn a_change_answers_what_was_before<E: Networked>(rank: &E) {
    let (peer, at) = next(rank, 0);
    let swap = |expect, new| peer.fetch(at, Fetch::CompareSwap { expect, new }).unwrap();
    assert_eq!(peer.fetch(at, Fetch::Add(5)).unwrap(), 0);
    assert_eq!(peer.fetch(at, Fetch::Add(2u64.wrapping_neg())).unwrap(), 5);
    assert_eq!(swap(3, u64::MAX), 3);
    assert_eq!(swap(3, 1), u64::MAX);
    assert_eq!(peer.fetch(at, Fetch::Add(2)).unwrap(), u64::MAX);
    assert_eq!(peer.read(at).unwrap(), 1);
    rank.meet();
    assert_eq!(own(rank, 0), 1);
}

pub fn begun_changes_are_all_answered<E: Networked>(rank: &E) {
    let begun: Vec<_> = (0..100)
        .map(|index| {
            let (peer, at) = next(rank, index % 10);
            peer.begin(at, Fetch::Add(1)).unwrap()
        })
        .collect();
    let (peer, _) = next(rank, 0);
    let mut answers: Vec<u64> = begun.into_iter().map(|b| peer.finish(b).unwrap()).collect();
    answers.sort_unstable();
    let expected: Vec<u64> = (0..100).map(|index| index / 10).collect();
    assert_eq!(answers, expected);
    rank.meet();
}

pub fn no_addition_of_any_rank_is_lost<E: Networked>(rank: &E) {
    let (peer, at) = word(rank, 0, 3);
    for _ in 0..50 {
        peer.fetch(at, Fetch::Add(1)).unwrap();
        peer.post(at, 1 << 32).unwrap();
    }
    peer.flush().unwrap();
    rank.meet();
    let all = 50 * u64::from(RANKS);
    assert_eq!(peer.read(at).unwrap(), all << 32 | all);
    rank.meet();
}

pub fn one_swap_wins<E: Networked>(rank: &E) {
    for round in 0..20 {
        let (peer, at) = word(rank, 0, round);
        let new = u64::from(rank.rank()) + 1;
        let won = peer.fetch(at, Fetch::CompareSwap { expect: 0, new }).unwrap() == 0;
        let (peer, at) = word(rank, 0, 100 + round);
        peer.fetch(at, Fetch::Add(u64::from(won))).unwrap();
    }
    rank.meet();
    let (peer, _) = word(rank, 0, 0);
    assert!((100..120).all(|index| peer.read(word(rank, 0, index).1).unwrap() == 1));
    rank.meet();
}

pub fn many_words_are_changed_with_one_call<E: Networked>(rank: &E) {
    let (peer, first) = next(rank, 0);
    for count in [1, 2, 17, E::Peer::WORDS_MAX] {
        let at = |index: usize| first.offset(8 * index as i64);
        let mut before = vec![7; count];
        peer.fetch_all(|index| (at(index), Fetch::Add(index as u64 + 1)), &mut before).unwrap();
        assert!(before.iter().all(|value| *value == 0), "{count} words");
        let back = |index: usize| Fetch::CompareSwap { expect: index as u64 + 1, new: 0 };
        peer.fetch_all(|index| (at(index), back(index)), &mut before).unwrap();
        assert!(before.iter().zip(1..).all(|(value, index)| *value == index), "{count} words");
    }
    rank.meet();
}

pub fn additions_without_answers_are_done_by_a_flush<E: Networked>(rank: &E) {
    let (peer, first) = next(rank, 0);
    for _ in 0..3 {
        peer.post_all(300, |index| (first.offset(8 * index as i64), index as u64)).unwrap();
        peer.post(first, 1).unwrap();
    }
    peer.flush().unwrap();
    rank.meet();
    assert_eq!(own(rank, 0), 3);
    assert!((1..300).all(|index| own(rank, index) == 3 * index as u64));
}

pub fn an_answer_behind_an_order_is_a_flush<E: Networked>(rank: &E) {
    let (peer, at) = next(rank, 0);
    let from = [rank.rank() as u8 + 1; 5000];
    // SAFETY: within the memory; the bytes stay until the flush.
    unsafe { peer.put(at.offset(64), from.as_ptr(), from.len() as u64) }.unwrap();
    peer.order();
    peer.fetch(at, Fetch::Add(1)).unwrap();
    rank.meet();
    let mut seen = [0; 5000];
    rank.load(64, &mut seen);
    assert!(seen == [(rank.rank() + RANKS - 1) as u8 % RANKS as u8 + 1; 5000]);
    rank.meet();
    peer.flush().unwrap();
}

pub fn a_word_is_read_behind_a_change_of_another<E: Networked>(rank: &E) {
    let ((peer, one), (_, other)) = (next(rank, 0), next(rank, 1));
    for value in 0..20 {
        peer.post(other, 1).unwrap();
        peer.order();
        let (before, read) = peer.fetch_and_read(one, Fetch::Add(1), other).unwrap();
        assert_eq!((before, read), (value, value + 1));
    }
    rank.meet();
}

pub fn a_bounce_buffer_reads_changes_and_writes_back<E: Networked>(rank: &E) {
    let there: Vec<u8> = (0..BOUNCE_BYTES).map(|at| at as u8).collect();
    rank.store(64, &there);
    rank.meet();
    let (peer, memory) = next(rank, 8);
    for bytes in [3, 100, BOUNCE_BYTES - 7] {
        let mut buffer = peer.bounce_buffer();
        assert!(buffer.at().addr().is_multiple_of(4096));
        buffer.read(memory, 7..7 + bytes).unwrap();
        buffer.arrived().unwrap();
        // SAFETY: the buffer is this rank's, and as long as that.
        let seen = unsafe { core::slice::from_raw_parts_mut(buffer.at().add(7), bytes) };
        assert!(*seen == there[7..7 + bytes]);
        seen.fill(0xaa);
        // Everything but the byte in the middle goes back, and then the old bytes again.
        let middle = 7 + bytes / 2;
        buffer.write(memory, &[7..middle, middle + 1..7 + bytes]).unwrap();
        let mut now = vec![0; BOUNCE_BYTES];
        peer.order();
        // SAFETY: within the memory, and no code reads it before the flush.
        unsafe { peer.get(now.as_mut_ptr(), memory, BOUNCE_BYTES as u64) }.unwrap();
        peer.flush().unwrap();
        let changed = |at: usize| (7..7 + bytes).contains(&at) && at != middle;
        let expected = |at: usize| if changed(at) { 0xaa } else { there[at] };
        assert!(now.iter().enumerate().all(|(at, byte)| *byte == expected(at)), "{bytes} bytes");
        // SAFETY: as above.
        unsafe { peer.put(memory, there.as_ptr(), BOUNCE_BYTES as u64) }.unwrap();
        peer.flush().unwrap();
    }
    rank.meet();
}

pub fn two_bounce_buffers_are_different_memory<E: Networked>(rank: &E) {
    let (peer, memory) = next(rank, 8);
    let mut one = peer.bounce_buffer();
    let Some(other) = peer.try_bounce_buffer() else { return rank.meet() };
    assert!(one.at().addr().abs_diff(other.at().addr()) >= BOUNCE_BYTES);
    // SAFETY: the buffer is this rank's.
    unsafe { other.at().write_bytes(0x55, BOUNCE_BYTES) };
    one.read(memory, 0..BOUNCE_BYTES).unwrap();
    one.arrived().unwrap();
    // SAFETY: as above.
    let kept = unsafe { core::slice::from_raw_parts(other.at(), BOUNCE_BYTES) };
    assert!(kept.iter().all(|byte| *byte == 0x55));
    rank.meet();
}

/// Waits until word `index` of this rank has a value.
fn await_own<E: Networked>(rank: &E, index: usize, value: u64) {
    while own(rank, index) < value {
        std::thread::yield_now();
    }
}

/// Words of the data of each rank in the memory of rank 0, behind its doorbell and the counters.
const DATA_WORDS: usize = 300;
const FIRST_DATA: usize = 8;

/// The first word of a rank's data in the memory of rank 0.
fn data_of(rank: u32) -> usize {
    FIRST_DATA + (rank as usize - 1) * DATA_WORDS
}

pub fn a_notification_comes_behind_its_puts<E: Networked>(rank: &E) {
    for round in 1..=20u64 {
        let words = if round % 3 == 0 { DATA_WORDS } else { round as usize };
        if rank.rank() == 0 {
            for origin in 1..RANKS {
                await_own(rank, origin as usize, round);
                let first = data_of(origin);
                assert!((first..first + words).all(|index| own(rank, index) == round));
            }
        } else {
            let data = vec![round; words];
            let (peer, counter) = word(rank, 0, rank.rank() as usize);
            let (_, to) = word(rank, 0, data_of(rank.rank()));
            peer.begin_notified();
            // SAFETY: the data are there until the flush.
            unsafe { peer.put(to, data.as_ptr().cast(), 8 * words as u64) }.unwrap();
            peer.notify(counter, word(rank, 0, 0).1, Behind::Puts).unwrap();
            peer.flush().unwrap();
        }
        rank.meet();
    }
}

pub fn a_notification_comes_behind_its_gets<E: Networked>(rank: &E) {
    for round in 1..=20u64 {
        let words = if round % 3 == 0 { DATA_WORDS } else { round as usize };
        if rank.rank() == 0 {
            for origin in 1..RANKS {
                (0..words).for_each(|index| {
                    rank.store(8 * (data_of(origin) + index), &round.to_ne_bytes());
                });
            }
        }
        rank.meet();
        if rank.rank() == 0 {
            for origin in 1..RANKS {
                await_own(rank, origin as usize, round);
                (0..words).for_each(|index| {
                    rank.store(8 * (data_of(origin) + index), &u64::MAX.to_ne_bytes());
                });
            }
        } else {
            let mut data = vec![0u64; words];
            let (peer, counter) = word(rank, 0, rank.rank() as usize);
            let (_, from) = word(rank, 0, data_of(rank.rank()));
            peer.begin_notified();
            // SAFETY: nothing else uses the data until the flush.
            unsafe { peer.get(data.as_mut_ptr().cast(), from, 8 * words as u64) }.unwrap();
            peer.notify(counter, word(rank, 0, 0).1, Behind::All).unwrap();
            peer.flush().unwrap();
            assert!(data.iter().all(|value| *value == round));
        }
        rank.meet();
    }
}

pub fn each_notification_counts_once<E: Networked>(rank: &E) {
    let (peer, counter) = word(rank, 0, 1);
    let (_, doorbell) = word(rank, 0, 0);
    for number in 0..500 {
        peer.begin_notified();
        match number % 50 {
            0 => peer.cancel_notified(),
            _ => peer.notify(counter, doorbell, Behind::Puts).unwrap(),
        }
    }
    peer.flush().unwrap();
    rank.meet();
    assert_eq!(peer.read(counter).unwrap(), 490 * u64::from(RANKS));
    rank.meet();
}
