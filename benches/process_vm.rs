//! Cost of access to memory of another process: a bare system call, the transport on top of it
//! (`fabric::cma`), many runs, as bare lists and as a batch, and small puts that are gathered. The
//! target is a fork of this process that sleeps. Nanoseconds, first quartiles: a machine that
//! others use disturbs most rounds of long work.
//!
//!     cargo bench --bench process_vm

#![allow(clippy::missing_docs_in_private_items, clippy::pedantic)] // it measures alone

use fompi::measured::{
    Batch, Gathering, Life, Mark, PendingCount, Process, RankOnNode, SmallPuts, Way,
};
use std::cell::Cell;
use std::hint::black_box;
use std::ptr;
use std::time::Instant;

const MEMORY: usize = 16 << 20;
const ROUNDS: usize = 101;
/// Runs of a list, and of the batch that is compared with it.
const RUNS: usize = 1000;
/// Runs of one bare call.
const LIST: usize = 128;

/// Memory that both processes have, each its own copy.
fn memory() -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping touches no existing one.
    let base = unsafe { libc::mmap(ptr::null_mut(), MEMORY, access, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    base.cast()
}

/// Touches all of it, so that no page is still to come.
fn touch(memory: *mut u8) {
    // SAFETY: its length.
    unsafe { memory.write_bytes(1, MEMORY) };
}

/// A process that does `work` and sleeps.
fn target(work: impl FnOnce()) -> Process<'static> {
    // SAFETY: this process has one thread.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no second process");
    if pid == 0 {
        // SAFETY: plain system calls.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        work();
        loop {
            // SAFETY: as above.
            unsafe { libc::pause() };
        }
    }
    Process::new(RankOnNode(1), Box::leak(Box::new(Life::new(Mark::of(pid)))))
}

fn end(target: Process<'static>) {
    // SAFETY: a child of ours.
    unsafe {
        libc::kill(target.life.mark().pid, libc::SIGKILL);
        libc::waitpid(target.life.mark().pid, ptr::null_mut(), 0);
    }
}

/// The first quartile of the times of each piece of work, done in turns.
fn quartiles<const N: usize>(mut work: [&mut dyn FnMut(); N], repeat: usize) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (work, times) in work.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (0..repeat).for_each(|_| work());
            times.push(start.elapsed().as_nanos() as f64 / repeat as f64);
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 4]
    })
}

/// The number of processes with puts that a later call completes, in a process with one thread.
struct Count(Cell<i32>);

impl PendingCount for Count {
    fn change(&self, change: impl FnOnce() -> i32) {
        self.0.set(self.0.get() + change());
    }
}

fn iovec(address: *mut u8, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: address.cast(), iov_len: bytes }
}

fn bare(way: Way, pid: i32, here: &[libc::iovec], there: &[libc::iovec]) {
    let (h, t) = (here.len() as u64, there.len() as u64);
    // SAFETY: lists of memory that both processes have.
    let moved = unsafe {
        match way {
            Way::Put => libc::process_vm_writev(pid, here.as_ptr(), h, there.as_ptr(), t, 0),
            Way::Get => libc::process_vm_readv(pid, here.as_ptr(), h, there.as_ptr(), t, 0),
        }
    };
    assert_eq!(moved as usize, here.iter().map(|run| run.iov_len).sum());
}

fn single(target: Process<'static>, here: *mut u8, there: *mut u8) {
    println!("one run            bytes      bare transport    ratio");
    for (bytes, repeat) in [(8, 200), (4096, 200), (1 << 20, 4)] {
        for way in [Way::Put, Way::Get] {
            let mut plain = || {
                let (here, there) = (black_box(here), black_box(there));
                bare(way, target.life.mark().pid, &[iovec(here, bytes)], &[iovec(there, bytes)]);
            };
            let mut transport = || {
                let (here, there) = (black_box(here), black_box(there).addr() as u64);
                // SAFETY: memory that both processes have.
                let done = unsafe {
                    match way {
                        Way::Put => target.put(there, here, bytes as u64),
                        Way::Get => target.get(here, there, bytes as u64),
                    }
                };
                done.unwrap();
            };
            let [plain, transport] = quartiles([&mut plain, &mut transport], repeat);
            println!(
                "{way:?} {bytes:>20} {plain:>9.0} {transport:>9.0} {:>8.3}",
                transport / plain
            );
        }
    }
}

/// Bare lists of runs of eight bytes, dense on the other side.
fn lists(target: Process<'static>, here: *mut u8, there: *mut u8) {
    println!("\nper run            in list   origin    target");
    for count in [1, 2, 8, 16, 32, 64, 128, 256, 512, 1024] {
        let far = |base: *mut u8| -> Vec<_> {
            (0..count).map(|i| iovec(base.wrapping_add(64 * i), 8)).collect()
        };
        let (from, to) = (far(here), far(there));
        let mut origin =
            || bare(Way::Put, target.life.mark().pid, &from, &[iovec(there, 8 * count)]);
        let mut target = || bare(Way::Put, target.life.mark().pid, &[iovec(here, 8 * count)], &to);
        let [origin, target] =
            quartiles([&mut origin, &mut target], 8).map(|time| time / count as f64);
        println!("Put {count:>20} {origin:>9.1} {target:>9.1}");
    }
}

/// Where the runs lie: far apart at the origin, at the target or at both.
fn runs(target: Process<'static>, here: *mut u8, there: *mut u8) {
    println!("\nper run            bytes    origin    target    lists    batch");
    for way in [Way::Put, Way::Get] {
        for bytes in [8, 64, 512] {
            for stride in [bytes + 8, 1024, 2048, 8192] {
                for (from, to) in [(bytes, stride), (stride, bytes), (stride, stride)] {
                    let place =
                        |i: usize| (here.wrapping_add(i * from), there.wrapping_add(i * to));
                    let mut lists = || {
                        for first in (0..RUNS).step_by(LIST) {
                            let mut list = [(iovec(here, 0), iovec(there, 0)); LIST];
                            let count = LIST.min(RUNS - first);
                            for (i, pair) in list[..count].iter_mut().enumerate() {
                                let (here, there) = place(first + i);
                                *pair = (iovec(here, bytes), iovec(there, bytes));
                            }
                            let (h, t) = (list.map(|pair| pair.0), list.map(|pair| pair.1));
                            bare(way, target.life.mark().pid, &h[..count], &t[..count]);
                        }
                    };
                    let mut batch = || {
                        let mut batch = Batch::new(target, way);
                        for (here, there) in (0..RUNS).map(place) {
                            // SAFETY: memory that both processes have.
                            unsafe { batch.push(here, there.addr() as u64, bytes as u64) };
                        }
                        // SAFETY: as above.
                        unsafe { batch.finish() }.unwrap();
                    };
                    let [lists, batch] =
                        quartiles([&mut lists, &mut batch], 1).map(|time| time / RUNS as f64);
                    println!("{way:?} {bytes:>20} {from:>9} {to:>9} {lists:>8.1} {batch:>8.1}");
                }
            }
        }
    }
}

/// Small puts, each made at once and gathered: a put with its flush, and many puts with a flush.
fn small_puts(process: Process<'static>, here: *mut u8, there: *mut u8) {
    println!("\nper put            bytes    stride     puts     once    later     ratio");
    let (puts, due) = (SmallPuts::default(), Count(Cell::new(0)));
    let to = Gathering { process, small_puts: Some(&puts) };
    for bytes in [8, 64, 1024] {
        for (count, stride) in [(1, bytes), (RUNS, bytes), (RUNS, 8192)] {
            let place = |i: usize| there.wrapping_add(i * stride).addr() as u64;
            // SAFETY: memory that both processes have.
            let put = |i: usize| unsafe { process.put(place(i), here, bytes as u64) }.unwrap();
            let mut once = || (0..count).for_each(put);
            let mut later = || {
                for i in 0..count {
                    // SAFETY: as above.
                    unsafe { to.put_later(place(i), here, bytes as u64, || &due) }.unwrap();
                }
                assert!(!puts.complete(process, &due));
            };
            let repeat = if count == 1 { 200 } else { 1 };
            let [once, later] =
                quartiles([&mut once, &mut later], repeat).map(|time| time / count as f64);
            let ratio = later / once;
            println!(
                "Put {bytes:>20} {stride:>9} {count:>8} {once:>8.0} {later:>8.0} {ratio:>9.3}"
            );
        }
    }
}

/// Gets of a word that its owner changes between two values, and how many returned another value.
fn torn(here: *mut u8, there: *mut u8) {
    let word = there.cast::<u64>();
    let owner = target(|| {
        loop {
            // SAFETY: a word of the target.
            unsafe {
                word.write_volatile(0);
                word.write_volatile(u64::MAX);
            }
        }
    });
    let (mut seen, mut torn) = ([0u64; 2], 0u64);
    for _ in 0..2_000_000 {
        // SAFETY: memory that both processes have.
        unsafe { owner.get(here, there.addr() as u64, 8) }.unwrap();
        // SAFETY: as above.
        match unsafe { here.cast::<u64>().read_volatile() } {
            0 => seen[0] += 1,
            u64::MAX => seen[1] += 1,
            _ => torn += 1,
        }
    }
    end(owner);
    println!("\naligned words in motion: {} old, {} new, {torn} in parts", seen[0], seen[1]);
}

fn main() {
    let (here, there) = (memory(), memory());
    touch(here);
    let target = target(|| touch(there));
    let (cookie_address, cookie) = (there.addr() as u64 + MEMORY as u64 - 8, 0x0101_0101_0101_0101);
    let touched = Mark { cookie_address, cookie, ..*target.life.mark() };
    while touched.shows_cookie() != Some(true) {}
    single(target, here, there);
    lists(target, here, there);
    runs(target, here, there);
    small_puts(target, here, there);
    end(target);
    torn(here, there);
}
