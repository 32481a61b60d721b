//! A rank that polls its memory.

use super::*;
use crate::wire::this_process::CALLS_PER_SERVICE;

const ROUNDS: u64 = 50;
const TRIES: u32 = 20;

#[test]
fn a_rank_that_polls_its_memory_serves_what_the_service_thread_leaves_to_it() {
    // On a busy machine the service thread may have the event of a request, or serve again already.
    let mut most = 0;
    let serves = (0..TRIES).any(|_| {
        most = most.max(served_by_rank());
        most > ROUNDS / 2
    });
    assert!(serves, "{most} of {ROUNDS} requests");
}

/// Returns how many of the requests a rank serves that polls its memory.
fn served_by_rank() -> u64 {
    let (origin, target) = (Side::new(on_tcp, 1), Side::new(on_tcp, 1));
    let peer = target.seen_by(&origin.wire);
    let mut by_rank = 0;
    for round in 0..ROUNDS {
        assert_eq!(peer.fetch(target.at(0), Fetch::Add(1)).unwrap(), 2 * round);
        let serving = target.wire.serving().unwrap();
        let before = serving.steps();
        serving.keep(); // a step, too
        let ticket = peer.begin(target.at(0), Fetch::Add(1)).unwrap();
        peer.send_gathered();
        for _ in 0..CALLS_PER_SERVICE {
            target.wire.serve_at_times();
        }
        by_rank += target.wire.serving().unwrap().steps().saturating_sub(before + 1);
        assert_eq!(peer.finish(ticket).unwrap(), 2 * round + 1);
    }
    by_rank
}
