//! The duties of every road for bytes, one suite over both: load and store ([`super::copies`]) and
//! the kernel's copy ([`cma`]). The window is memory that two processes map at the same address, so
//! that either road reaches it, and each process sees what the other one did.

use super::copies;
use crate::fabric::Way;
use crate::fabric::cma::{self, Batch};
use crate::sync::{AtomicU64, Ordering};
use crate::sys::child::Child;
use crate::sys::life::{Life, Mark};
use crate::sys::process;
use crate::sys::segment::{Mapping, PAGE, Segment};

const PAGES: u64 = 4;
const BYTES: usize = (PAGES * PAGE) as usize;

/// Moves bytes between memory of this process and a window.
trait Road {
    fn put(&self, to: *mut u8, from: &[u8]);
    fn get(&self, to: &mut [u8], from: *mut u8);
}

struct LoadStore;

impl Road for LoadStore {
    fn put(&self, to: *mut u8, from: &[u8]) {
        // SAFETY: the cases stay inside of the window.
        unsafe { copies::copy(to, from.as_ptr(), from.len() as u64) };
    }

    fn get(&self, to: &mut [u8], from: *mut u8) {
        // SAFETY: likewise.
        unsafe { copies::copy(to.as_mut_ptr(), from, to.len() as u64) };
    }
}

/// Transfers one run at a time.
struct Cma(cma::Process<'static>);

impl Road for Cma {
    fn put(&self, to: *mut u8, from: &[u8]) {
        // SAFETY: the cases stay inside of the window.
        unsafe { self.0.put(to.addr() as u64, from.as_ptr(), from.len() as u64) }.unwrap();
    }

    fn get(&self, to: &mut [u8], from: *mut u8) {
        // SAFETY: likewise.
        unsafe { self.0.get(to.as_mut_ptr(), from.addr() as u64, to.len() as u64) }.unwrap();
    }
}

/// Transfers runs of seven bytes, the last ones first.
struct Batches(cma::Process<'static>);

impl Batches {
    fn transfer(&self, way: Way, here: *mut u8, there: *mut u8, bytes: usize) {
        let mut batch = Batch::new(self.0, way);
        for at in (0..bytes).step_by(7).rev() {
            let (here, there) = (here.wrapping_add(at), there.wrapping_add(at));
            // SAFETY: the cases stay inside of the window and of their buffers.
            unsafe { batch.push(here, there.addr() as u64, 7.min(bytes - at) as u64) };
        }
        // SAFETY: likewise.
        unsafe { batch.finish() }.unwrap();
    }
}

impl Road for Batches {
    fn put(&self, to: *mut u8, from: &[u8]) {
        self.transfer(Way::Put, from.as_ptr().cast_mut(), to, from.len());
    }

    fn get(&self, to: &mut [u8], from: *mut u8) {
        self.transfer(Way::Get, to.as_mut_ptr(), from, to.len());
    }
}

fn window() -> Mapping {
    let segment = Segment::create(PAGES * PAGE).unwrap();
    segment.reserve(0, PAGES * PAGE).unwrap();
    segment.map().unwrap()
}

/// Offsets and lengths around words and pages.
fn places() -> impl Iterator<Item = (usize, usize)> {
    let starts = (0..9).chain(4096 - 9..4096 + 2);
    starts.flat_map(|start| [1, 2, 4, 7, 8, 9, 16, 100, 4096, 4097].map(|bytes| (start, bytes)))
}

fn number(seed: usize, count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 + at / 256 + seed) as u8).collect()
}

fn a_put_is_there_when_it_returns_and_nothing_beside_it(road: &impl Road, window: &Mapping) {
    // SAFETY: the window's length, and no thread writes while the slice is read.
    let all = || unsafe { core::slice::from_raw_parts(window.base(), BYTES) };
    for (seed, (start, bytes)) in places().enumerate() {
        let (before, from) = (all().to_vec(), number(seed, bytes));
        road.put(window.base().wrapping_add(start), &from);
        assert_eq!(all()[start..start + bytes], from);
        assert_eq!(all()[..start], before[..start]);
        assert_eq!(all()[start + bytes..], before[start + bytes..]);
    }
}

fn a_get_is_here_when_it_returns_and_nothing_beside_it(road: &impl Road, window: &Mapping) {
    let there = number(3, BYTES);
    // SAFETY: the window's length.
    unsafe { window.base().copy_from(there.as_ptr(), BYTES) };
    for (start, bytes) in places() {
        let mut to = number(5, bytes + 16);
        road.get(&mut to[8..8 + bytes], window.base().wrapping_add(start));
        assert_eq!(to[8..8 + bytes], there[start..start + bytes]);
        assert_eq!(to[..8], number(5, 8));
        assert_eq!(to[8 + bytes..], number(5, bytes + 16)[8 + bytes..]);
    }
}

fn a_get_sees_the_put_before_it(road: &impl Road, window: &Mapping) {
    for (seed, (start, bytes)) in places().enumerate() {
        let (from, mut to) = (number(seed, bytes), vec![0; bytes]);
        road.put(window.base().wrapping_add(start), &from);
        road.get(&mut to, window.base().wrapping_add(start));
        assert_eq!(to, from);
    }
}

fn a_reader_of_a_later_store_sees_the_put(road: &impl Road, window: &Mapping) {
    const ROUNDS: u64 = 300;
    let at = |offset: usize| window.base().wrapping_add(offset);
    // SAFETY: aligned words of the window, which outlives the process that looks at them.
    let [flag, answer] = [at(0), at(64)].map(|word| unsafe { &*word.cast::<AtomicU64>() });
    let reader = Child::working(|| {
        (1..=ROUNDS).all(|round| {
            // Acquire: pairs with the Release of the round, behind its put.
            while flag.load(Ordering::Acquire) < round {
                std::thread::yield_now();
            }
            // SAFETY: inside of the window; the other process waits for the answer.
            let seen = (0..600).all(|i| unsafe { at(4000 + i).read_volatile() } == round as u8);
            // Release: the bytes are read before they are written again.
            answer.store(round, Ordering::Release);
            seen
        })
    });
    for round in 1..=ROUNDS {
        road.put(at(4000), &[round as u8; 600]);
        // Release: a reader that sees the round sees the put, too.
        flag.store(round, Ordering::Release);
        // Acquire: pairs with the Release of the answer.
        while reader.life().is_there() && answer.load(Ordering::Acquire) < round {
            std::thread::yield_now();
        }
    }
    assert!(reader.said_yes());
}

macro_rules! conformance {
    ($($case:ident)*) => {
        mod load_store {
            use super::{LoadStore, window};
            $(#[test] fn $case() { super::$case(&LoadStore, &window()); })*
        }
        mod kernel {
            use super::{Cma, own, window};
            $(#[test] fn $case() { super::$case(&Cma(own()), &window()); })*
        }
        mod kernel_in_batches {
            use super::{Batches, own, window};
            $(#[test] fn $case() { super::$case(&Batches(own()), &window()); })*
        }
    };
}

/// This process as its own target: acts like the owner of a window on itself.
fn own() -> cma::Process<'static> {
    let life = Life::new(Mark::of(process::id()));
    cma::Process { rank: 0, life: Box::leak(Box::new(life)) }
}

conformance! {
    a_put_is_there_when_it_returns_and_nothing_beside_it
    a_get_is_here_when_it_returns_and_nothing_beside_it
    a_get_sees_the_put_before_it
    a_reader_of_a_later_store_sees_the_put
}
