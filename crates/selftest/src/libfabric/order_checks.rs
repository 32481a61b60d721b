//! Checks of the order in which writes, additions and reads of libfabric arrive, by loads of the
//! owner. A wrong order is a failure only if the provider promises the order.

use super::fabric_checks::{ROUNDS, final_value};
use super::fabric_endpoint::Operation;
use super::fabric_pair::{Differences, FabricPair, Seen};
use fompi_base::sync::Ordering;
use std::time::Instant;

/// The longest block that is written, in numbers.
const BLOCK: usize = 512;
/// The first numbers of the blocks of the checks. Each check has two, with a flag behind them.
const DELIVERED: usize = 4096;
const ORDERED: usize = 6144;
/// The additions, and the ring of blocks that are written before them.
const COUNTER: usize = 13_100;
const RING: usize = 8192;
const RING_BLOCKS: usize = 64;
const RING_BLOCK: usize = 64;
/// The block that is read behind its write.
const READ: usize = 12_288;

/// The length of the block of a round.
fn block_of(round: u64, longest: usize) -> usize {
    match round % 3 {
        0 => 1,
        1 => longest / 8,
        _ => longest,
    }
}

/// The owner sees a delivered write when it is complete.
pub fn delivered(pair: &FabricPair) -> Seen {
    rounds(pair, DELIVERED, Operation::Deliver, true)
}

/// The owner sees a write when a delivered write behind it is complete.
pub fn before_delivered(pair: &FabricPair) -> Seen {
    rounds(pair, ORDERED, Operation::Write, pair.provider.orders_writes(8 * BLOCK))
}

/// In each round the origin writes a block, and delivers a flag; when this is complete, it tells
/// the owner by MPI, and the owner loads. The next round uses the other block.
fn rounds(
    pair: &FabricPair,
    area: usize,
    write: fn(usize) -> Operation,
    is_promised: bool,
) -> Seen {
    let (start, mut found, mut round) = (Instant::now(), Differences::default(), 0);
    let mut is_last = false;
    while !is_last {
        round += 1;
        let words = block_of(round, BLOCK);
        let at = area + 2 * BLOCK * usize::from(round % 2 == 0);
        if pair.is_origin() {
            let endpoint = &pair.endpoint;
            (0..words).for_each(|word| endpoint.set_own(word, round));
            endpoint.set_own(BLOCK, round);
            let begun = endpoint.start(write(words), 0, at);
            pair.done(
                begun.and_then(|()| endpoint.finish(Operation::Deliver(1), BLOCK, at + BLOCK)),
            );
        }
        let ends = pair.is_origin() && (round == ROUNDS || !pair.has_time(start));
        is_last = pair.meet(ends.into()) > 0;
        for word in [at, at + words - 1, at + BLOCK] {
            let loaded = pair.endpoint.exposed(word).load(Ordering::Acquire);
            if !pair.is_origin() && loaded != round {
                found.note(round, loaded);
            }
        }
    }
    let count = pair.judge("fi_write", &found, is_promised);
    Seen { is_promised, detail: format!("{round} rounds, {count} loads too early") }
}

/// The owner sees a write when it sees an addition behind it.
pub fn before_add(pair: &FabricPair) -> Seen {
    let is_promised = pair.provider.orders_atomics(8 * RING_BLOCK);
    let (start, mut rounds) = (Instant::now(), 0_u64);
    let (mut last, mut found, mut values) = (0, Differences::default(), 0_i64);
    let ring = |round: u64| RING_BLOCK * usize::try_from(round % RING_BLOCKS as u64).unwrap_or(0);
    let add = || -> Result<(), String> {
        let (endpoint, one) = (&pair.endpoint, RING_BLOCKS * RING_BLOCK);
        endpoint.set_own(one, 1);
        while rounds < ROUNDS && pair.has_time(start) {
            for _ in 0..RING_BLOCKS / 2 {
                rounds += 1;
                let (at, words) = (ring(rounds), block_of(rounds, RING_BLOCK));
                (at..at + words).for_each(|word| endpoint.set_own(word, rounds));
                endpoint.start(Operation::Write(words), at, RING + at)?;
                endpoint.start(Operation::Add, one, COUNTER)?;
            }
            endpoint.wait(0)?;
        }
        Ok(())
    };
    pair.run(add, || {
        let count = pair.endpoint.exposed(COUNTER).load(Ordering::Acquire);
        if count == last {
            return;
        }
        (last, values) = (count, values + 1);
        let at = RING + ring(count);
        for word in [at, at + block_of(count, RING_BLOCK) - 1] {
            let loaded = pair.endpoint.exposed(word).load(Ordering::Acquire);
            if loaded < count {
                found.note(count, loaded);
            }
        }
    });
    let early = pair.judge("fi_write", &found, is_promised);
    final_value(pair, COUNTER, if pair.is_origin() { rounds } else { 0 });
    let values = pair.meet(if pair.is_origin() { 0 } else { values });
    let detail = format!("{rounds} rounds, the owner saw {values} values, {early} too early");
    Seen { is_promised, detail }
}

/// Whether a read passes the write before it.
pub fn read_behind(pair: &FabricPair) -> Seen {
    let (start, mut rounds, mut passed) = (Instant::now(), 0_u64, 0_u64);
    let read = || -> Result<(), String> {
        while rounds < ROUNDS && pair.has_time(start) {
            rounds += 1;
            let (endpoint, words) = (&pair.endpoint, block_of(rounds, BLOCK));
            (0..words).for_each(|word| endpoint.set_own(word, rounds));
            endpoint.start(Operation::Write(words), 0, READ)?;
            endpoint.finish(Operation::Read(1), BLOCK, READ + words - 1)?;
            let got = endpoint.own(BLOCK).load(Ordering::Acquire);
            passed += u64::from(got != rounds);
        }
        Ok(())
    };
    pair.run(read, || {});
    let detail = format!("{passed} of {rounds} reads passed the write before them");
    Seen { is_promised: false, detail }
}
