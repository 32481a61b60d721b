//! Checks that operations of libfabric do what they should: at random places, while the target
//! computes, and against loads of the owner.

use super::fabric_endpoint::Operation;
use super::fabric_pair::{Differences, FabricPair, Seen};
use fompi_base::sync::Ordering;
use std::hint;
use std::time::{Duration, Instant};

/// The most rounds of a check.
pub const ROUNDS: u64 = 100_000;
/// Operations that are under way at a time, and the numbers that each of them may choose from.
const LANES: usize = 16;
const LANE: usize = 256;
/// The time that the target computes, and the longest time of an operation meanwhile.
const BUSY: Duration = Duration::from_secs(1);
const SLOW: Duration = Duration::from_millis(10);
/// The number that is changed while its owner loads it: both halves change.
const LOADED: usize = 13_000;
const STEP: u64 = (1 << 32) + 1;

/// Pseudo-random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> usize {
        usize::try_from(self.next() % limit).unwrap_or(0)
    }
}

/// Starts a random operation, and changes the model as it should change the memory. Returns the
/// call and the number that it should fetch.
fn start_random(
    pair: &FabricPair,
    random: &mut Random,
    model: &mut [u64],
    lane: usize,
) -> Result<Option<(&'static str, u64)>, String> {
    let at = lane * LANE + random.below(LANE as u64);
    let (own, value, before) = (4 * lane, random.next(), model[at]);
    let endpoint = &pair.endpoint;
    endpoint.set_own(own, value);
    endpoint.set_own(own + 1, !before);
    let (call, operation, from, after) = match random.below(4) {
        0 => (None, Operation::Deliver(1), own, value),
        1 => (Some("fi_read"), Operation::Read(1), own + 1, before),
        2 => {
            let after = before.wrapping_add(value);
            (Some("fi_fetch_atomic"), Operation::FetchAdd, own, after)
        }
        _ => {
            let is_equal = random.below(2) == 0;
            endpoint.set_own(own + 2, if is_equal { before } else { !before });
            let after = if is_equal { value } else { before };
            (Some("fi_compare_atomic"), Operation::CompareSwap, own, after)
        }
    };
    endpoint.start(operation, from, at)?;
    model[at] = after;
    Ok(call.map(|call| (call, before)))
}

/// Operations at random offsets against a model, on both sides.
pub fn random_operations(pair: &FabricPair) -> Seen {
    let (mut model, mut random, mut count) = (vec![0; LANES * LANE], Random(1), 0);
    let start = Instant::now();
    let mut batch = || -> Result<(), String> {
        let mut is_wrong = false;
        while count < ROUNDS && pair.has_time(start) && !is_wrong {
            let mut fetched = [None; LANES];
            for (lane, fetched) in fetched.iter_mut().enumerate() {
                *fetched = start_random(pair, &mut random, &mut model, lane)?;
            }
            pair.endpoint.wait(0)?;
            for (lane, expected) in fetched.into_iter().enumerate() {
                let got = pair.endpoint.own(4 * lane + 1).load(Ordering::Acquire);
                if let Some((call, expected)) = expected.filter(|(_, number)| *number != got) {
                    pair.fail(call, format!("{expected:#x}"), format!("{got:#x}"));
                    is_wrong = true;
                }
            }
            count += LANES as u64;
        }
        Ok(())
    };
    if pair.is_origin() {
        pair.done(batch());
    }
    let sum = |numbers: &mut dyn Iterator<Item = u64>| {
        numbers.fold(0_u64, |sum, number| sum.rotate_left(1).wrapping_add(number)).cast_signed()
    };
    let own = if pair.is_origin() { sum(&mut model.into_iter()) } else { 0 };
    let expected = pair.meet(own);
    if !pair.is_origin() && !pair.is_lost() {
        let memory = &mut (0..LANES * LANE).map(|at| {
            pair.endpoint.exposed(at).load(Ordering::Acquire) // behind the completions
        });
        let found = sum(memory);
        if found != expected {
            pair.fail("fi_writemsg", format!("checksum {expected:#x}"), format!("{found:#x}"));
        }
    }
    Seen { detail: format!("{count} operations"), ..Seen::default() }
}

/// The target computes and calls neither libfabric nor MPI.
pub fn busy_target(pair: &FabricPair) -> Seen {
    pair.meet(0);
    let (start, mut longest, mut count) = (Instant::now(), Duration::ZERO, 0_u64);
    while start.elapsed() < BUSY && !pair.is_lost() {
        if !pair.is_origin() {
            hint::spin_loop();
            continue;
        }
        let operations = [
            Operation::Deliver(1),
            Operation::Read(1),
            Operation::FetchAdd,
            Operation::CompareSwap,
        ];
        let begin = Instant::now();
        let operation = operations[usize::try_from(count % 4).unwrap_or(0)];
        pair.done(pair.endpoint.finish(operation, 0, LOADED + 8));
        longest = longest.max(begin.elapsed());
        count += 1;
    }
    pair.meet(0);
    // Only an adapter needs no processor of the target.
    let is_adapter = pair.provider.name().0 == "cxi";
    let (milliseconds, is_slow) = (longest.as_secs_f64() * 1e3, longest >= SLOW);
    let detail = format!("{count} operations, the longest {milliseconds:.3} ms");
    if is_slow && is_adapter {
        pair.fail("an operation of libfabric", format!("{} ms at most", SLOW.as_millis()), &detail);
    }
    Seen { is_promised: is_adapter || !is_slow, detail }
}

/// The owner loads a number that is changed by additions.
pub fn loads(pair: &FabricPair) -> Seen {
    let (start, mut rounds, mut fetched) = (Instant::now(), 0, Differences::default());
    let (mut last, mut found, mut values) = (0, Differences::default(), 0_i64);
    let mut add = || -> Result<(), String> {
        pair.endpoint.set_own(0, STEP);
        while rounds < ROUNDS && pair.has_time(start) {
            for _ in 0..31 {
                pair.endpoint.start(Operation::Add, 0, LOADED)?;
            }
            pair.endpoint.wait(0)?;
            pair.endpoint.finish(Operation::FetchAdd, 0, LOADED)?;
            rounds += 32;
            let got = pair.endpoint.own(1).load(Ordering::Acquire);
            if got != (rounds - 1) * STEP {
                fetched.note((rounds - 1) * STEP, got);
            }
        }
        Ok(())
    };
    pair.run(&mut add, || {
        let loaded = pair.endpoint.exposed(LOADED).load(Ordering::Acquire);
        if loaded < last || loaded >> 32 != loaded & 0xffff_ffff {
            found.note(last, loaded);
        }
        values += i64::from(loaded != last);
        last = loaded;
    });
    if let Some((expected, got)) = fetched.first {
        pair.fail("fi_fetch_atomic", expected, got);
    }
    pair.judge("fi_atomic", &found, true);
    final_value(pair, LOADED, if pair.is_origin() { rounds * STEP } else { 0 });
    let values = pair.meet(if pair.is_origin() { 0 } else { values });
    Seen { detail: format!("{rounds} adds, the owner saw {values} values"), ..Seen::default() }
}

/// The owner sees the last value of a number within a second. `own`: the value, or 0 on the
/// target.
pub fn final_value(pair: &FabricPair, at: usize, own: u64) {
    let expected = pair.meet(own.cast_signed()).cast_unsigned();
    let start = Instant::now();
    if !pair.is_origin() {
        let load = || pair.endpoint.exposed(at).load(Ordering::Acquire);
        while load() != expected && start.elapsed() < Duration::from_secs(1) {
            pair.done(pair.endpoint.progress());
        }
        if load() != expected {
            pair.fail("fi_atomic", expected, load());
        }
    }
    pair.meet(0);
}
