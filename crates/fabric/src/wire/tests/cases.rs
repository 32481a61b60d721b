//! Tests of what this transport guarantees, on any device.

use super::super::counts::Kinds;
use super::super::device::NetworkKind;
use super::super::pool::Part;
use super::bounce_buffers::*;
use super::contact::*;
use super::*;

fn every_operation(open: Open) {
    let origin = Side::new(open, 1 << 16);
    let target = Side::new(open, 1 << 16);
    for there in [&target, &origin] {
        let peer = there.seen_by(&origin.wire);
        assert_eq!(peer.fetch(there.at(0), Fetch::Add(5)).unwrap(), 0);
        let swap = |expect, new| Fetch::CompareSwap { expect, new };
        assert_eq!(peer.fetch(there.at(0), swap(5, 9)).unwrap(), 5);
        assert_eq!(peer.fetch(there.at(0), swap(5, 1)).unwrap(), 9);
        assert_eq!(peer.fetch(there.at(0), Fetch::Add(2u64.wrapping_neg())).unwrap(), 9);
        peer.post(there.at(0), 3).unwrap();
        peer.flush().unwrap();
        assert_eq!((peer.read(there.at(0)).unwrap(), there.word(0)), (10, 10));
        // Lengths on both sides of the bounds of inline data, of blocks, and of a page.
        for count in [1, 16, 17, 512, 1024, 1025, 40_000] {
            let (data, mut back) = (numbers(count, count as u64), vec![0; count]);
            put(&peer, there.at(2), &data).unwrap();
            peer.flush().unwrap();
            assert!(is_settled(&peer));
            assert!((0..count).all(|index| there.word(2 + index) == data[index]));
            get(&peer, &mut back, there.at(2)).unwrap();
            peer.flush_local().unwrap();
            assert!(data == back);
        }
    }
    assert_eq!(origin.wire.counts().contacted, 2);
    assert_eq!((target.wire.counts().accepted, origin.wire.counts().accepted), (1, 1));
}

fn bytes_need_no_alignment(open: Open) {
    let (origin, target) = (open(), Side::new(open, 4096));
    let peer = target.seen_by(&origin);
    let data: Vec<u8> = (0..20_000).map(|index| (index % 251) as u8).collect();
    let mut back = vec![0u8; 20_003];
    for (first, bytes) in [(1, 1), (3, 7), (5, 130), (7, 9001), (1, 19_999)] {
        let to = target.at(0).offset(first);
        // SAFETY: the buffer is longer, and lives until the flush.
        unsafe { peer.put(to, data.as_ptr().wrapping_add(1), bytes) }.unwrap();
        peer.flush().unwrap();
        // SAFETY: the buffer is longer, and lives until the flush.
        unsafe { peer.get(back.as_mut_ptr().wrapping_add(3), to, bytes) }.unwrap();
        peer.flush_local().unwrap();
        let count = bytes as usize;
        assert!(back[3..3 + count] == data[1..1 + count]);
        assert_eq!(back[3 + count..].iter().max().unwrap_or(&0), &0);
    }
    assert_eq!(target.word(0) as u8, 0);
}

/// The target waits for the addition, so that this process need not.
fn a_flush_waits_for_no_awaited_post(open: Open) {
    let (origin, target) = (open(), Side::new(open, 8));
    let peer = target.seen_by(&origin);
    peer.post(target.at(0), 1).unwrap();
    assert!(!peer.is_idle());
    peer.flush().unwrap();
    let waits = origin.counts().kinds.awaited;
    for _ in 0..10 {
        peer.post_awaited(target.at(0), 1, target.at(2)).unwrap();
        assert!(peer.is_idle());
        peer.flush().unwrap();
    }
    assert_eq!(origin.counts().kinds.awaited, waits);
    until("the additions", || target.word(0) == 11);
    // Data before it are waited for.
    put(&peer, target.at(1), &[7]).unwrap();
    peer.post_awaited(target.at(0), 1, target.at(2)).unwrap();
    assert!(!peer.is_idle());
    peer.flush().unwrap();
    assert_eq!(target.word(1), 7);
    until("the last addition", || target.word(0) == 12);
}

/// Round trips one after the other are counted, not those that pass at once.
fn waits_at_one_time_count_once(open: Open) {
    let (origin, targets) = (open(), [Side::new(open, 8), Side::new(open, 8)]);
    let peers = [targets[0].seen_by(&origin), targets[1].seen_by(&origin)];
    let begin = |index: usize| peers[index].begin(targets[index].at(0), Fetch::Add(1)).unwrap();
    let count = || origin.counts().kinds.awaited;
    for round in 0..10 {
        let before = count();
        let begun = [begin(0), begin(1), begin(0)];
        for (index, ticket) in begun.into_iter().enumerate() {
            peers[index % 2].finish(ticket).unwrap();
            peers[0].try_ping(); // no thread waits for it
        }
        assert_eq!((count() - before, round), (1, round));
    }
}

fn nothing_costs_nothing(open: Open) {
    let (origin, target) = (open(), Side::new(open, 1));
    let peer = target.seen_by(&origin);
    put(&peer, target.at(0), &[]).unwrap();
    get(&peer, &mut [], target.at(0)).unwrap();
    peer.order();
    peer.flush().unwrap();
    peer.flush_local().unwrap();
    together(&[&peer]).flush().unwrap();
    assert_eq!(origin.progress(), 0);
    assert!(peer.is_idle());
    assert_eq!(origin.counts(), Counts::default());
}

fn memory_without_bytes_can_be_exposed(open: Open) {
    let wire = open();
    let exposed = wire.expose(core::ptr::null_mut(), 0).unwrap();
    assert_eq!((exposed.remote(), wire.counts()), (Remote::default(), Counts::default()));
}

/// Law 2: after a flush all data are in memory, for every reader.
fn a_flush_is_seen_by_others(open: Open) {
    let (origin, other, target) = (open(), open(), Side::new(open, 4096));
    let (peer, seen) = (target.seen_by(&origin), target.seen_by(&other));
    for round in 1..=20 {
        for count in [1, 100, 2000] {
            let data = vec![round; count];
            put(&peer, target.at(8), &data).unwrap();
            peer.flush_local().unwrap();
            peer.post(target.at(0), 1).unwrap();
            put(&peer, target.at(1), &[round]).unwrap();
            if round % 2 == 0 { peer.flush() } else { together(&[&peer]).flush() }.unwrap();
            assert!((8..8 + count).all(|index| target.word(index) == round));
            assert_eq!(target.word(1), round);
            assert_eq!(seen.read(target.at(8 + count - 1)).unwrap(), round);
        }
        assert_eq!(target.word(0), 3 * round);
    }
}

/// Law 6: the answer to a request after an order shows that puts and gets before it are done.
fn an_answer_behind_an_order_is_a_flush(open: Open) {
    let (origin, target) = (open(), Side::new(open, 8192));
    let peer = target.seen_by(&origin);
    for round in 1..=30 {
        let (data, mut back) = (vec![round; 2000], [0; 300]);
        put(&peer, target.at(100), &data).unwrap();
        get(&peer, &mut back, target.at(5000)).unwrap();
        peer.order();
        peer.fetch(target.at(0), Fetch::Add(1)).unwrap();
        assert!((100..2100).all(|index| target.word(index) == round));
        assert!(back == [round - 1; 300]);
        peer.flush().unwrap();
        put(&peer, target.at(5000), &[round; 300]).unwrap();
        peer.flush().unwrap();
    }
    // At no flush was anything under way but the last put, which over TCP is answered itself.
    assert_eq!(origin.counts().kinds.proofs, if origin.is_served() { 0 } else { 30 });
}

fn order_keeps_a_put_behind_a_get(open: Open) {
    let (origin, target) = (open(), Side::new(open, 4096));
    let peer = target.seen_by(&origin);
    for count in [1, 500, 3000] {
        let zeros = vec![0; count];
        put(&peer, target.at(0), &zeros).unwrap();
        peer.flush().unwrap();
        for round in 1..=30 {
            let (data, mut back) = (vec![round; count], vec![7; count]);
            get(&peer, &mut back, target.at(0)).unwrap();
            peer.order();
            put(&peer, target.at(0), &data).unwrap();
            peer.flush().unwrap();
            assert!(back.iter().all(|word| *word == round - 1));
        }
    }
    let is_strict = origin.core.device.kind() == NetworkKind::Tcp;
    assert_eq!(origin.counts().kinds.fenced == 0, is_strict);
}

fn order_keeps_a_flag_behind_data(open: Open) {
    let (origin, target) = (open(), Side::new(open, 4096));
    std::thread::scope(|scope| {
        let target = &target;
        scope.spawn(move || {
            let peer = target.seen_by(&origin);
            for round in 1..=30 {
                put(&peer, target.at(8), &[round; 1000]).unwrap();
                peer.post(target.at(0), 1).unwrap();
                peer.order();
                put(&peer, target.at(1), &[round]).unwrap();
                until("the target's turn", || target.word(2) >= round);
            }
            peer.flush().unwrap();
        });
        for round in 1..=30 {
            until("the flag", || target.word(1) >= round);
            assert_eq!(target.word(0), round);
            assert!((8..1008).all(|index| target.word(index) == round));
            target.words[2].store(round, Ordering::Release);
        }
    });
}

fn contended_words_lose_nothing(open: Open) {
    const ROUNDS: u64 = 60;
    let target = Side::new(open, 8);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let wire = open();
                let peer = target.seen_by(&wire);
                for _ in 0..ROUNDS {
                    peer.fetch(target.at(0), Fetch::Add(1 << 32 | 1)).unwrap();
                    peer.post(target.at(1), 1).unwrap();
                    let mut expect = peer.read(target.at(2)).unwrap();
                    loop {
                        let new = expect + 3;
                        let op = Fetch::CompareSwap { expect, new };
                        let found = peer.fetch(target.at(2), op).unwrap();
                        if found == expect {
                            break;
                        }
                        expect = found;
                    }
                }
                peer.flush().unwrap();
            });
        }
    });
    assert_eq!(target.word(0), 4 * ROUNDS * (1 << 32 | 1));
    assert_eq!((target.word(1), target.word(2)), (4 * ROUNDS, 12 * ROUNDS));
}

fn threads_share_a_peer(open: Open) {
    let (wire, target) = (open(), Side::new(open, 8192));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let peer = target.seen_by(&wire);
            let target = &target;
            scope.spawn(move || {
                for round in 1..=20 {
                    let at = 1024 * (thread + 1);
                    let (data, mut back) = (numbers(1000, round), vec![0; 1000]);
                    put(&peer, target.at(at), &data).unwrap();
                    let ticket = peer.begin(target.at(0), Fetch::Add(1)).unwrap();
                    together(&[&peer]).flush().unwrap();
                    get(&peer, &mut back, target.at(at)).unwrap();
                    peer.finish(ticket).unwrap();
                    peer.flush_local().unwrap();
                    assert!(data == back);
                }
            });
        }
    });
    assert_eq!(target.word(0), 80);
    assert_eq!(wire.counts().contacted, 1);
}

fn many_answers_may_be_outstanding(open: Open) {
    let (origin, target) = (open(), Side::new(open, 4));
    let peer = target.seen_by(&origin);
    let mut tickets = Vec::new();
    for _ in 0..1500 {
        tickets.push(peer.begin(target.at(0), Fetch::Add(2)).unwrap());
    }
    let finish = |ticket| peer.finish(ticket).unwrap();
    let mut answers: Vec<u64> = tickets.into_iter().map(finish).collect();
    answers.sort_unstable();
    assert!(answers.iter().zip(0..).all(|(answer, index)| *answer == 2 * index));
    assert!(is_settled(&peer));
}

fn long_messages_are_split(open: Open) {
    let (origin, target) = (open(), Side::new(open, 1 << 17));
    // Relaxed: before there are messages.
    origin.core.message_bytes_max.store(512, Ordering::Relaxed);
    let peer = target.seen_by(&origin);
    let data = numbers(100_001, 0);
    put(&peer, target.at(1), &data).unwrap();
    peer.flush().unwrap();
    assert!((0..data.len()).all(|index| target.word(1 + index) == data[index]));
    let pieces = (8 * data.len() as u64).div_ceil(512);
    assert_eq!(origin.counts().kinds.pieces, pieces - 1);
    assert!(origin.counts().kinds.waits > 0, "more than the queue takes");
    let mut back = vec![0; data.len()];
    get(&peer, &mut back, target.at(1)).unwrap();
    peer.flush_local().unwrap();
    assert!(data == back);
    assert_eq!(origin.counts().kinds.pieces, 2 * (pieces - 1));
}

fn blocks_are_waited_for(open: Open) {
    let origin = open();
    let targets: Vec<Side> = (0..3).map(|_| Side::new(open, 256)).collect();
    let peers: Vec<Arc<Peer>> = targets.iter().map(|target| target.seen_by(&origin)).collect();
    let mut back = vec![[0; 200]; 300];
    for (round, back) in back.iter_mut().enumerate() {
        let (target, peer) = (&targets[round % 3], &peers[round % 3]);
        put(peer, target.at(0), &[round as u64; 200]).unwrap();
        peer.order();
        get(peer, back, target.at(0)).unwrap();
        peer.order();
    }
    together(&peers.iter().collect::<Vec<_>>()).flush().unwrap();
    for (round, back) in back.iter().enumerate() {
        assert!(*back == [round as u64; 200]);
    }
    assert_eq!(origin.core.blocks.free(), super::super::pool::BLOCKS);
}

/// Every other word of the origin's memory is part of one message; gaps at the target are read too.
fn parts_go_as_one_message(open: Open) {
    let (origin, target) = (open(), Side::new(open, 2048));
    let peer = target.seen_by(&origin);
    for count in [2, 16, 17, 1024] {
        let (data, mut back) = (numbers(2 * count, count as u64), vec![0; 2 * count]);
        let parts = |at: *mut u64, stride: usize| -> Vec<Part> {
            let part = |n: usize| {
                let here = at.wrapping_add(2 * n).cast();
                Part { here, at: (8 * stride * n) as u32, bytes: 8 }
            };
            (0..count).map(part).collect()
        };
        let (together, bytes) = (parts(data.as_ptr().cast_mut(), 1), 8 * count as u64);
        // SAFETY: the words of `data`, which together are that many bytes.
        unsafe { peer.put_gathered(target.at(3), &together, bytes) }.unwrap();
        peer.flush().unwrap();
        assert!((0..count).all(|n| target.word(3 + n) == data[2 * n]));
        let apart = parts(back.as_mut_ptr(), 2)[..count.div_ceil(2)].into();
        // SAFETY: words of `back`, which lives until the data have arrived.
        unsafe { peer.get_scattered(target.at(3), apart, bytes) }.unwrap();
        peer.flush_local().unwrap();
        assert!((0..count).step_by(2).all(|n| back[n] == data[2 * n]));
        assert!((0..count).all(|n| back[2 * n + 1] == 0));
    }
    let Kinds { inline, copied, gets_copied, .. } = origin.counts().kinds;
    assert_eq!((inline + copied, gets_copied), (4, 4));
    assert_eq!(origin.core.blocks.free(), super::super::pool::BLOCKS);
}

fn registrations_end_with_their_operations(open: Open) {
    let (origin, target) = (Side::new(open, 4096), Side::new(open, 4096));
    let peer = target.seen_by(&origin.wire);
    let before = origin.wire.counts();
    // TCP needs no registrations.
    let one = u64::from(origin.wire.core.device.kind() != NetworkKind::Tcp);
    let data = numbers(4000, 1);
    for _ in 0..5 {
        put(&peer, target.at(0), &data).unwrap();
        put(&peer, target.at(0), &data[..2000]).unwrap();
    }
    assert_eq!(origin.wire.counts().registrations, one);
    assert_eq!(origin.wire.counts().regions, before.regions + one);
    peer.flush_local().unwrap();
    assert_eq!(origin.wire.counts().regions, before.regions);
    assert_eq!(origin.wire.counts().registered_bytes, before.registered_bytes);
    // Memory of a window is registered already.
    let window = origin.words.as_ptr().cast::<u8>();
    // SAFETY: the words live until the end.
    unsafe { peer.put(target.at(0), window, 8 * 4096) }.unwrap();
    peer.flush().unwrap();
    assert_eq!(origin.wire.counts().registrations, one);
    // The answer of a fetch ends them too, without a flush.
    put(&peer, target.at(0), &data).unwrap();
    peer.order();
    let ticket = peer.begin(target.at(0), Fetch::Add(0)).unwrap();
    put(&peer, target.at(0), &[1]).unwrap();
    peer.finish(ticket).unwrap();
    assert_eq!(origin.wire.counts().regions, before.regions);
    peer.flush().unwrap();
    // A test whether the peer is idle, without a flush, ends them too.
    let mut back = vec![0; 2000];
    get(&peer, &mut back, target.at(0)).unwrap();
    until("the answer", || {
        origin.wire.progress();
        peer.is_idle()
    });
    assert_eq!(origin.wire.counts().regions, before.regions);
}

fn a_buffer_in_use_outlives_the_flush_of_another(open: Open) {
    let (origin, one, other) = (open(), Side::new(open, 4096), Side::new(open, 8));
    let (slow, quick) = (one.seen_by(&origin), other.seen_by(&origin));
    for round in 1..=30 {
        let data = numbers(4000, round);
        put(&slow, one.at(0), &data).unwrap();
        // Ends the registrations that nothing uses.
        quick.fetch(other.at(0), Fetch::Add(1)).unwrap();
        quick.flush().unwrap();
        slow.flush().unwrap();
        assert!((0..4000).all(|index| one.word(index) == data[index]));
    }
    assert_eq!(origin.counts().regions, 0);
}

fn constants_can_be_put(open: Open) {
    static CONSTANTS: [u64; 2000] = [0x0123_4567_89ab_cdef; 2000];
    let (origin, target) = (open(), Side::new(open, 2000));
    let peer = target.seen_by(&origin);
    put(&peer, target.at(0), &CONSTANTS).unwrap();
    peer.flush().unwrap();
    assert!((0..2000).all(|index| target.word(index) == CONSTANTS[index]));
}

/// Sends many more puts than the queue holds, with no more memory than for a few.
fn a_full_queue_is_waited_for(open: Open) {
    let (origin, target) = (open(), Side::new(open, 1024));
    let peer = target.seen_by(&origin);
    let real = core::ptr::fn_addr_eq(open, on_device as Open);
    let puts = if real { 100_000 } else { 20_010 };
    let word = |index: u64| (index % 1024) as usize;
    let mut before = 0;
    for index in 0..puts {
        if index == 1000 {
            before = own_bytes();
        }
        put(&peer, target.at(word(index)), &[index]).unwrap();
    }
    let grown = own_bytes().saturating_sub(before);
    // The last put may leave at once, with an answer of its own, which is the proof of all.
    let needed = peer.with(|queue| Ok(queue.needs_proof())).unwrap();
    peer.flush().unwrap();
    assert!((puts - 1024..puts).all(|index| target.word(word(index)) == index));
    let kinds = origin.counts().kinds;
    assert_eq!((kinds.inline, kinds.proofs), (puts, u64::from(needed)));
    assert!(kinds.waits > 0);
    if real {
        // No other test runs at the same time there. Eight bytes for each put would be more.
        assert!(grown < 700 << 10, "{grown} bytes for {puts} puts");
    }
}

/// Private memory of this process in use.
fn own_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

fn take_turn(case: fn(Open)) {
    let _turn = turn();
    case(on_device);
}

macro_rules! cases {
    ($($case:ident)*) => {
        mod fake {
            $(#[test] fn $case() { super::$case(super::on_fake); })*
        }
        mod write_after_write {
            $(#[test] fn $case() { super::$case(super::on_write_after_write); })*
        }
        mod unordered {
            $(#[test] fn $case() { super::$case(super::on_unordered); })*
        }
        mod tcp {
            $(#[test] fn $case() { super::$case(super::on_tcp); })*
        }
        mod device {
            $(
                #[test]
                #[ignore = "needs an RDMA device"]
                fn $case() { super::take_turn(super::$case); }
            )*
        }
    };
}

cases! {
    every_operation
    bytes_need_no_alignment
    nothing_costs_nothing
    a_flush_waits_for_no_awaited_post
    waits_at_one_time_count_once
    memory_without_bytes_can_be_exposed
    a_flush_is_seen_by_others
    an_answer_behind_an_order_is_a_flush
    order_keeps_a_put_behind_a_get
    order_keeps_a_flag_behind_data
    contended_words_lose_nothing
    threads_share_a_peer
    many_answers_may_be_outstanding
    long_messages_are_split
    parts_go_as_one_message
    blocks_are_waited_for
    registrations_end_with_their_operations
    a_buffer_in_use_outlives_the_flush_of_another
    constants_can_be_put
    many_contact_one_at_once
    a_process_without_the_secret_is_refused
    a_wrong_key_is_an_error_and_stays_one
    memory_that_is_not_exposed_any_more_is_an_error
    a_bad_buffer_is_the_origins_own_error
    a_ping_finds_a_process_that_answers
    a_full_queue_is_waited_for
    many_words_are_changed_at_once
    what_is_read_into_a_block_is_written_from_there
    bounce_buffers_leave_half_of_the_blocks
    a_lost_peer_leaves_no_block_behind
}
