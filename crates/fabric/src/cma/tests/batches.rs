//! Transfers of many runs.

use super::*;

/// Runs as (offset at the origin, offset at the target, bytes).
type Runs = Vec<(usize, usize, usize)>;

fn transfer(way: Way, here: &Pages, there: &Pages, runs: &Runs) -> Result<()> {
    let mut batch = Batch::new(own(), way);
    for &(from, to, bytes) in runs {
        // SAFETY: inside of both mappings, which outlive the batch.
        unsafe { batch.push(here.at(from), there.address(to), bytes as u64) };
    }
    // SAFETY: all runs are inside of both mappings.
    unsafe { batch.finish() }
}

/// Both ways, against a copy by hand.
fn check(pages: usize, runs: &Runs) {
    for way in [Way::Put, Way::Get] {
        let (here, there) = (Pages::marked(pages, 1), Pages::marked(pages, 2));
        let mut expected = match way {
            Way::Put => there.bytes(0, there.bytes).to_vec(),
            Way::Get => here.bytes(0, here.bytes).to_vec(),
        };
        for &(from, to, bytes) in runs {
            match way {
                Way::Put => {
                    expected[to..to + bytes].copy_from_slice(here.bytes(from, from + bytes))
                }
                Way::Get => {
                    expected[from..from + bytes].copy_from_slice(there.bytes(to, to + bytes))
                }
            }
        }
        transfer(way, &here, &there, runs).unwrap();
        let (changed, kept, seed) =
            if way == Way::Put { (&there, &here, 1) } else { (&here, &there, 2) };
        assert!(changed.bytes(0, changed.bytes) == expected, "{way:?}");
        assert!(are_marks(kept.bytes(0, kept.bytes), seed, 0));
    }
}

#[test]
fn an_empty_batch_is_done() {
    check(1, &vec![]);
}

#[test]
fn runs_of_any_stride_arrive() {
    for bytes in [1, 3, 8, 64, 700, 2048, 5000] {
        for gap in [0, 1, 8, 120, 1024, 2047, 2048, 2049, 4096, 9000] {
            let count = (64 * 4096 - 100) / (bytes + gap);
            let strided = |i: usize| 50 + i * (bytes + gap);
            check(64, &(0..count).map(|i| (strided(i), 7 + i * bytes, bytes)).collect());
            check(64, &(0..count).map(|i| (7 + i * bytes, strided(i), bytes)).collect());
            check(64, &(0..count).map(|i| (strided(i), strided(i) - 50, bytes)).collect());
        }
    }
}

#[test]
fn more_runs_than_the_kernel_takes_at_once_arrive() {
    check(40, &(0..9000).map(|i| (i * 17, 3 + i * 18, 13)).collect());
    check(40, &(0..9000).map(|i| (i * 17, 40 * 4096 - (i + 1) * 18, 13)).collect());
}

#[test]
fn runs_without_any_order_arrive() {
    let mut state = 88172645463325252u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % below
    };
    for _ in 0..200 {
        // Each run stays in a slot of its own on either side: no byte is written twice.
        let slot = [64, 512, 3000][random(3)];
        let count = 64 * 4096 / slot;
        let mut slots: Vec<usize> = (0..count).collect();
        (1..count).for_each(|i| slots.swap(i, random(i + 1)));
        let sorted = random(2) == 0;
        let mut runs = Runs::new();
        for (i, other) in slots.into_iter().enumerate() {
            let bytes = 1 + random(slot);
            let (from, to) = (random(slot - bytes + 1), random(slot - bytes + 1));
            let there = if sorted { i } else { other };
            runs.push((other * slot + from, there * slot + to, bytes));
        }
        check(64, &runs);
    }
}

#[test]
fn a_get_touches_no_page_in_which_it_wants_nothing() {
    let page = page_bytes() as usize;
    for bytes in [1, 8, 2000] {
        let (here, there) = (Pages::marked(4, 1), Pages::marked(4, 2));
        there.protect(1, libc::PROT_NONE);
        there.protect(3, libc::PROT_NONE);
        let (before, behind) = (page - bytes, 2 * page);
        // Enough short runs to go by way of the stack, too.
        let few = vec![(0, before, bytes), (bytes, behind, bytes)];
        let mut many: Runs = (0..40).map(|i| (3 * page + 2 * i, 9 * i, 2)).collect();
        many.extend(&few);
        for runs in [few, many] {
            here.fill(1);
            transfer(Way::Get, &here, &there, &runs).unwrap();
            for (at, from, bytes) in runs {
                assert_eq!(here.bytes(at, at + bytes), &marks(2)[from..from + bytes]);
            }
        }
    }
}

#[test]
fn the_first_error_is_kept_and_nothing_moves_after_it() {
    let bad = 5 * page_bytes() as usize;
    // The bad page begins inside of a run, with a run, and after a run (2978).
    let counts = [3, 300, 2978, 3000];
    for (count, way) in counts.into_iter().flat_map(|n| [(n, Way::Put), (n, Way::Get)]) {
        let (here, there) = (Pages::marked(8, 1), Pages::marked(8, 2));
        let (mut expected, from, to) = match way {
            Way::Put => (marks(2).to_vec(), marks(1), &there),
            Way::Get => (marks(1).to_vec(), marks(2), &here),
        };
        let (stride, bytes) = (there.bytes / count, there.bytes / count - 3);
        let runs: Runs = (0..count).map(|i| (i * stride, i * stride, bytes)).collect();
        there.protect(5, if way == Way::Put { libc::PROT_READ } else { libc::PROT_NONE });
        let hit = runs.iter().find(|run| run.1 + bytes > bad).unwrap().1;
        let fault = Error::Fault {
            rank: RANK.in_error_of_transport(),
            address: there.address(hit.max(bad)),
        };
        assert_eq!(transfer(way, &here, &there, &runs), Err(fault));
        there.protect(5, libc::PROT_READ);
        for (at, _, bytes) in runs.into_iter().filter(|run| run.0 < bad) {
            let end = bad.min(at + bytes);
            expected[at..end].copy_from_slice(&from[at..end]);
        }
        assert!(to.bytes(0, to.bytes) == &expected[..to.bytes], "{way:?} {count}");
    }
}

#[test]
fn a_bad_run_of_the_origin_is_named_and_those_ahead_of_it_arrive() {
    let (here, there) = (Pages::marked(2, 1), Pages::marked(2, 2));
    let bad = ptr::without_provenance_mut::<u8>(0xffff_8000_0000_0000);
    let mut batch = Batch::new(own(), Way::Put);
    // SAFETY: inside of the target's pages.
    let put = unsafe {
        batch.push(here.at(10), there.address(20), 30);
        batch.push(bad, there.address(200), 30);
        batch.push(here.at(300), there.address(300), 30);
        batch.finish()
    };
    assert_eq!(put, Err(Error::OriginFault { address: bad.addr() as u64 }));
    assert!(are_marks(there.bytes(0, 20), 2, 0));
    assert_eq!(there.bytes(20, 50), here.bytes(10, 40));
    assert!(are_marks(there.bytes(50, there.bytes), 2, 50));
}

#[test]
fn a_run_of_more_than_a_gib_is_moved_by_itself() {
    // The end of the run is not readable: the test only checks that the run is tried, and that the
    // bytes before it arrive.
    let (here, there) = (Pages::marked(2, 1), Pages::marked(3, 2));
    here.protect(1, libc::PROT_NONE);
    let mut batch = Batch::new(own(), Way::Put);
    // SAFETY: the origin ends after its first page.
    let put = unsafe {
        batch.push(here.at(0), there.address(5), 3);
        batch.push(here.at(10), there.address(20), 3 << 30);
        batch.push(here.at(0), there.address(0), 3);
        batch.finish()
    };
    let p = page_bytes() as usize;
    assert_eq!(put, Err(Error::OriginFault { address: here.address(p) }));
    assert!(are_marks(there.bytes(0, 5), 2, 0));
    assert_eq!(there.bytes(5, 8), here.bytes(0, 3));
    assert_eq!(there.bytes(20, 10 + p), here.bytes(10, p));
}
