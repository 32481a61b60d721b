//! Check of keys: memory is registered a thousand times, and a key that has ended reaches nothing.

use super::fabric_endpoint::{Operation, Registered};
use super::fabric_pair::{FabricPair, Seen};
use fompi_base::sync::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Keys that are made and ended.
const KEYS: u64 = 1000;
/// The first key that this check asks for; the endpoint has those before.
const FIRST: u64 = 2;
/// Keys that are tried, before and after their end.
const TRIED: usize = 4;
/// The number that they reach, what the owner has there, and what a stale key would write.
const AT: usize = 13_200;
const KEPT: u64 = 0x600d;
const STALE: u64 = 0xbad;
/// The time after which an endpoint must work again.
const RECOVERED: Duration = Duration::from_secs(2);

/// A key reaches memory until it has ended. Then it is refused, and the endpoint still works.
pub fn stale_keys(pair: &FabricPair) -> Seen {
    let endpoint = &pair.endpoint;
    let mut live = Vec::new();
    if !pair.is_origin() {
        endpoint.exposed(AT).store(KEPT, Ordering::Release); // the origin reads it behind a meeting
        match registered(pair) {
            Ok(regions) => live = regions,
            Err(why) => pair.done(Err(why)),
        }
    }
    let keys: Vec<u64> = live.iter().map(Registered::key).collect();
    let keys = pair.receive_from_target(serde_json::to_vec(&keys).unwrap_or_default());
    let keys: Vec<u64> = serde_json::from_slice(&keys).unwrap_or_default();
    let try_live = || keys.iter().try_for_each(|key| reads(pair, Some(*key)));
    pair.run(try_live, || {});
    drop(live);
    pair.meet(0);
    let (mut refusals, mut longest) = (Vec::new(), Duration::ZERO);
    if pair.is_origin() {
        let operations = [Operation::Deliver(1), Operation::Read(1)];
        for (key, operation) in keys.iter().flat_map(|key| operations.map(|one| (*key, one))) {
            if !pair.is_lost() {
                refusals.extend(refused(pair, key, operation));
            }
            if !pair.is_lost() {
                longest = longest.max(recovered(pair));
            }
        }
    }
    pair.meet(0);
    let memory = endpoint.exposed(AT).load(Ordering::Acquire);
    if !pair.is_origin() && memory != KEPT {
        pair.fail("fi_write with a stale key", KEPT, memory);
    }
    let count = refusals.len();
    refusals.sort_unstable();
    refusals.dedup();
    let (errors, milliseconds) = (refusals.join(", "), longest.as_secs_f64() * 1e3);
    let mut detail = format!("{KEYS} keys, {count} accesses refused ({errors})");
    if !pair.is_lost() {
        detail += &format!(", after which the endpoint works in {milliseconds:.3} ms");
    }
    Seen { detail, ..Seen::default() }
}

/// Makes and ends keys; the last ones still live.
fn registered(pair: &FabricPair) -> Result<Vec<Registered>, String> {
    let last = FIRST + KEYS - TRIED as u64;
    for key in FIRST..last {
        pair.endpoint.register(key)?;
    }
    (last..FIRST + KEYS).map(|key| pair.endpoint.register(key)).collect()
}

/// Reads by a key that lives; by that of the endpoint, if none is named.
fn reads(pair: &FabricPair, key: Option<u64>) -> Result<(), String> {
    let endpoint = &pair.endpoint;
    endpoint.set_own(0, 0);
    match key {
        Some(key) => endpoint.start_with_key(key, Operation::Read(1), 0, AT)?,
        None => endpoint.start(Operation::Read(1), 0, AT)?,
    }
    endpoint.wait(0)?;
    match endpoint.own(0).load(Ordering::Acquire) {
        KEPT => Ok(()),
        got => Err(format!("a read of {got:#x} in place of {KEPT:#x}")),
    }
}

/// Begins an operation by a stale key. Returns the error of the provider. An operation without a
/// completion is not refused: a flush would wait for it forever.
fn refused(pair: &FabricPair, key: u64, operation: Operation) -> Option<String> {
    let endpoint = &pair.endpoint;
    endpoint.set_own(0, STALE);
    let begun = endpoint.start_with_key(key, operation, 0, AT);
    let (call, expected) = ("an access with a stale key", "an error");
    match begun.and_then(|()| endpoint.wait(0)) {
        Err(why) if endpoint.in_flight() > 0 => pair.lose(call, expected, why),
        Err(refusal) => return Some(refusal),
        Ok(()) => pair.fail(call, expected, "success"),
    }
    None
}

/// Waits until the endpoint works again: a provider may have to connect anew. Returns the time.
fn recovered(pair: &FabricPair) -> Duration {
    let start = Instant::now();
    loop {
        match reads(pair, None) {
            Err(_) if start.elapsed() < RECOVERED && pair.endpoint.in_flight() == 0 => {
                thread::yield_now();
            }
            result => {
                pair.done(result);
                return start.elapsed();
            }
        }
    }
}
