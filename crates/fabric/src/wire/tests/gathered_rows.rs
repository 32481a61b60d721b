//! Tests of rows that travel without a copy on RDMA devices.

use super::*;
use crate::Way;
use crate::remote::Runs;

/// Rows: their number, their words, and the words from one to the next in this process.
type Rows = (usize, usize, usize);

/// Transfers rows that follow each other at the target, `gap` bytes apart.
fn transfer(peer: &Peer, way: Way, there: Remote, here: *mut u64, rows: Rows, gap: u64) {
    let (count, words, stride) = rows;
    let bytes = 8 * words as u64;
    let mut runs = peer.runs(there, way);
    for row in 0..count {
        let at = there.at + row as u64 * (bytes + gap);
        // SAFETY: the tests keep the words until they have flushed.
        unsafe { runs.push(here.wrapping_add(row * stride).cast(), at, bytes) };
    }
    // SAFETY: as above.
    unsafe { runs.finish() }.unwrap();
}

/// The requests since the counts `before`: of puts without and with a copy, and of such gets.
fn requests(wire: &Wire, before: &Counts) -> [u64; 4] {
    let (now, before) = (wire.counts().kinds, before.kinds);
    let gets_copied = now.gets_copied - before.gets_copied;
    let (lent, copied) = (now.lent - before.lent, now.copied - before.copied);
    [lent, copied, now.gets - before.gets - gets_copied, gets_copied]
}

/// Puts rows, gets them back, and compares them. Returns the requests.
fn there_and_back(wire: &Wire, target: &Side, memory: *mut u64, rows: Rows) -> [u64; 4] {
    let (peer, before) = (target.seen_by(wire), wire.counts());
    let (count, words, stride) = rows;
    let data = numbers(count * stride, 7);
    let at = |index: usize| memory.wrapping_add(index);
    // SAFETY: the memory of the caller has as many words.
    (0..data.len()).for_each(|index| unsafe { at(index).write(data[index]) });
    transfer(&peer, Way::Put, target.at(1), memory, rows, 0);
    peer.flush().unwrap();
    let wanted = |row: usize, word: usize| data[row * stride + word];
    for (row, word) in (0..count).flat_map(|row| (0..words).map(move |word| (row, word))) {
        assert_eq!(target.word(1 + row * words + word), wanted(row, word), "{rows:?}");
    }
    // SAFETY: as above.
    (0..data.len()).for_each(|index| unsafe { at(index).write(0) });
    transfer(&peer, Way::Get, target.at(1), memory, rows, 0);
    peer.flush_local().unwrap();
    for (index, word) in data.iter().enumerate() {
        let is_in_row = index % stride < words;
        // SAFETY: as above.
        let found = unsafe { at(index).read() };
        assert_eq!(found, if is_in_row { *word } else { 0 }, "{rows:?}");
    }
    requests(wire, &before)
}

fn rows_of_registered_memory_travel_without_a_copy(open: Open) {
    let (origin, target) = (Side::new(open, 1 << 16), Side::new(open, 1 << 16));
    let memory = origin.words.as_ptr().cast_mut().cast();
    let count = |rows| there_and_back(&origin.wire, &target, memory, rows);
    // The first contact.
    target.seen_by(&origin.wire).read(target.at(0)).unwrap();
    assert_eq!(count((8, 256, 259)), [1, 0, 1, 0]);
    // The last four rows are as long as a block.
    assert_eq!(count((20, 256, 259)), [2, 1, 2, 1]);
    assert_eq!(count((4, 2048, 2051)), [1, 0, 1, 0]);
    assert_eq!(count((9, 2048, 2051)), [2, 0, 2, 0]);
    // As many rows in fewer requests, if they are copied.
    assert_eq!(count((60, 64, 67)), [0, 4, 0, 4]);
    assert_eq!(origin.wire.counts().registrations, 0);
    // Other memory is copied, and longer rows are registered one by one.
    let mut other = vec![0; 1 << 15];
    let found = there_and_back(&origin.wire, &target, other.as_mut_ptr(), (20, 256, 259));
    assert_eq!(found, [0, 5, 0, 5]);
}

fn rows_apart_at_the_target_are_no_such_message(open: Open) {
    let (origin, target) = (Side::new(open, 1 << 13), Side::new(open, 1 << 13));
    let (peer, memory) = (target.seen_by(&origin.wire), origin.words.as_ptr().cast_mut().cast());
    let data = numbers(1 << 13, 1);
    put(&peer, target.at(0), &data).unwrap();
    peer.flush().unwrap();
    // As copies where they are short, or each by itself.
    for ((count, words), wanted) in [((8, 256), [0, 0, 0, 3]), ((3, 2048), [0, 0, 3, 0])] {
        let before = origin.wire.counts();
        let stride = words + 3;
        transfer(&peer, Way::Get, target.at(0), memory, (count, words, stride), 8);
        peer.flush().unwrap();
        assert_eq!(requests(&origin.wire, &before), wanted);
        for (row, word) in (0..count).flat_map(|row| (0..words).map(move |word| (row, word))) {
            assert_eq!(origin.word(row * stride + word), data[row * (words + 1) + word]);
        }
    }
}

/// Makes a process on a device whose WRITEs and READs have at most `sges` pieces.
fn with_sges(sges: (i32, i32)) -> Wire {
    on_profile(&Profile { sges, ..Profile::default() }, &Verbs::default()).unwrap()
}

#[test]
fn requests_have_no_more_pieces_than_the_device_allows() {
    let limits = [((16, 16), [1, 0, 1, 0]), ((16, 3), [1, 0, 3, 0]), ((4, 0), [2, 0, 8, 0])];
    for (sges, wanted) in [&limits[..], &[((1, 1), [8, 0, 8, 0])]].concat() {
        let (wire, target) = (with_sges(sges), Side::new(on_fake, 1 << 15));
        let mut words = vec![0u64; 1 << 15];
        let _exposed = wire.expose(words.as_mut_ptr().cast(), 8 << 15).unwrap();
        target.seen_by(&wire).read(target.at(0)).unwrap();
        let rows = (8, 2048, 2050);
        assert_eq!(there_and_back(&wire, &target, words.as_mut_ptr(), rows), wanted, "{sges:?}");
    }
}

#[test]
fn rows_of_any_lengths_take_no_more_requests_than_copies() {
    let (target, mut random) = (Side::new(on_fake, 1 << 14), 1u64);
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % bound
    };
    for _ in 0..12 {
        let longest = [8, 100, 600, 2000][below(4) as usize];
        let rows: Vec<(usize, usize)> =
            (0..40).map(|_| (1 + below(longest) as usize, below(2) as usize)).collect();
        let mut words = numbers(40 * 2001, below(1 << 30));
        let counts = [(16, 16), (1, 1)].map(|sges| {
            let wire = with_sges(sges);
            let memory = words.as_mut_ptr();
            let _exposed = wire.expose(memory.cast(), 8 * words.len() as u64).unwrap();
            let peer = target.seen_by(&wire);
            peer.read(target.at(0)).unwrap();
            let mut runs = peer.runs(target.at(0), Way::Put);
            let (mut here, mut there) = (0, 0);
            let mut wanted = Vec::new();
            for (length, apart) in rows.iter().take_while(|(length, _)| {
                there += length;
                there <= 1 << 14
            }) {
                let at = target.at(wanted.len()).at;
                wanted.extend_from_slice(&words[here..here + length]);
                // SAFETY: the words live until the flush.
                unsafe { runs.push(memory.wrapping_add(here).cast(), at, 8 * *length as u64) };
                here += length + apart;
            }
            // SAFETY: as above.
            unsafe { runs.finish() }.unwrap();
            peer.flush().unwrap();
            assert!((0..wanted.len()).all(|index| target.word(index) == wanted[index]));
            let kinds = wire.counts().kinds;
            kinds.lent + kinds.copied + kinds.inline
        });
        assert!(counts[0] <= counts[1], "{counts:?}");
    }
}

rdma_cases! {
    rows_of_registered_memory_travel_without_a_copy
    rows_apart_at_the_target_are_no_such_message
}
