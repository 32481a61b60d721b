//! Tests of atomics on many words and of bounce buffers, on any device.

use super::super::pool::{BLOCK_BYTES, BLOCKS};
use super::*;

pub fn many_words_are_changed_at_once(open: Open) {
    let (origin, target) = (open(), Side::new(open, Peer::WORDS_MAX));
    let peer = target.seen_by(&origin);
    let at = |index| target.at(Peer::WORDS_MAX - 1 - index);
    let mut before = [7; Peer::WORDS_MAX];
    let kinds = || peer.kinds().1;
    for count in [1, 2, 16, 17, Peer::WORDS_MAX] {
        // Law 6: the order makes the answers of the other requests wait.
        peer.post_all(count, |index| (at(index), index as u64)).unwrap();
        peer.order();
        let (before, counted) = (&mut before[..count], kinds());
        let swap = |index: usize| {
            let expect = if index.is_multiple_of(3) { u64::MAX } else { index as u64 };
            (at(index), Fetch::CompareSwap { expect, new: 99 })
        };
        peer.fetch_all(swap, before).unwrap();
        assert!(before.iter().enumerate().all(|(index, before)| *before == index as u64));
        assert_eq!(kinds().fetches - counted.fetches, count as u64);
        // The last answer comes after the others.
        assert!(kinds().awaited - counted.awaited <= 1);
        for index in 0..count {
            let is = if index.is_multiple_of(3) { index as u64 } else { 99 };
            assert_eq!(target.word(Peer::WORDS_MAX - 1 - index), is);
        }
        peer.fetch_all(|index| (at(index), Fetch::Add(0)), before).unwrap();
        let clear = |index: usize| (at(index), before_of(index).wrapping_neg());
        peer.post_all(count, clear).unwrap();
        peer.flush().unwrap();
        assert!(target.words.iter().all(|word| word.load(Ordering::Acquire) == 0));
    }
    fn before_of(index: usize) -> u64 {
        if index.is_multiple_of(3) { index as u64 } else { 99 }
    }
}

pub fn what_is_read_into_a_block_is_written_from_there(open: Open) {
    const WORDS: usize = BLOCK_BYTES / 8;
    let (origin, target) = (open(), Side::new(open, WORDS));
    let peer = target.seen_by(&origin);
    let data = numbers(WORDS, 3);
    put(&peer, target.at(0), &data).unwrap();
    peer.flush().unwrap();
    // Parts that fit inline, parts that do not, and more parts than a chain has.
    let few: Vec<_> = vec![0..8, 16..24];
    let long: Vec<_> = vec![8..8, 80..1080, 4096..BLOCK_BYTES];
    let many: Vec<_> = (0..40).map(|index| 200 * index..200 * index + 160).collect();
    for parts in [few, long, many] {
        let mut buffer = peer.bounce_buffer();
        buffer.read(target.at(0), 0..4096).unwrap();
        buffer.read(target.at(0), 4096..BLOCK_BYTES).unwrap();
        buffer.arrived().unwrap();
        let before: Vec<u64> = (0..WORDS).map(|index| target.word(index)).collect();
        let words = buffer.at().cast::<u64>();
        for (index, before) in before.iter().enumerate() {
            // SAFETY: the block is that long, and nothing else uses it.
            let word = unsafe { &mut *words.wrapping_add(index) };
            assert_eq!(word, before);
            *word = !*word;
        }
        buffer.write(target.at(0), &parts).unwrap();
        peer.flush().unwrap();
        for (index, before) in before.into_iter().enumerate() {
            let written = parts.iter().any(|part| part.contains(&(8 * index)));
            let is = if written { !before } else { before };
            assert_eq!(target.word(index), is, "word {index} of {parts:?}");
        }
        assert_eq!(origin.core.blocks.free(), BLOCKS);
    }
}

pub fn bounce_buffers_leave_half_of_the_blocks(open: Open) {
    let (origin, target) = (open(), Side::new(open, 512));
    let peer = target.seen_by(&origin);
    let mut buffers: Vec<_> = std::iter::from_fn(|| peer.try_bounce_buffer()).collect();
    assert_eq!(buffers.len(), BLOCKS / 2);
    // A sending thread needs no more blocks than the other half has.
    for _ in 0..2 * BLOCKS {
        put(&peer, target.at(0), &[5; 512]).unwrap();
    }
    peer.flush().unwrap();
    buffers[0].read(target.at(0), 0..4096).unwrap();
    // Dropping a buffer waits for its READ, and the block is free for others.
    buffers.remove(0);
    drop(peer.bounce_buffer());
    drop(buffers);
    assert_eq!(origin.core.blocks.free(), BLOCKS);
}

pub fn a_lost_peer_leaves_no_block_behind(open: Open) {
    let (origin, target) = (open(), Side::new(open, 8));
    let peer = target.seen_by(&origin);
    let wrong = Remote { key: target.at(0).key ^ 0x5500, ..target.at(0) };
    let (mut one, mut other) = (peer.bounce_buffer(), peer.bounce_buffer());
    let read = one.read(wrong, 0..8).and_then(|()| one.arrived());
    assert!(matches!(read, Err(Error::Lost { .. })));
    assert!(matches!(other.read(target.at(0), 0..8), Err(Error::Lost { .. })));
    assert!(matches!(one.write(target.at(0), &[0..8, 16..24]), Err(Error::Lost { .. })));
    let mut before = [0; 3];
    let add = |_| (target.at(0), Fetch::Add(1));
    assert!(matches!(peer.fetch_all(add, &mut before), Err(Error::Lost { .. })));
    drop(other);
    assert_eq!(origin.core.blocks.free(), BLOCKS);
}
