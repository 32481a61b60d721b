//! The only file that names atomics. Everything that is shared between threads or processes uses
//! these names, so that the same code runs on the machine's atomics and, with `--cfg loom`, under
//! the model checker. No other file may name `core::sync::atomic`. `Mutex` and `Condvar` are for
//! code that the model checker runs.

#[cfg(not(loom))]
pub use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering, fence,
};

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering, fence,
};

/// Stores `new` if the two words there are `old`, and returns what they were. Others may change
/// each word by the atomics above at the same time. Acquire and Release.
///
/// # Safety
/// `at` is a multiple of sixteen, and its bytes may be read and written. The processor has the
/// instruction.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[inline(always)]
pub unsafe fn compare_exchange_pair(at: *mut u64, old: [u64; 2], new: [u64; 2]) -> [u64; 2] {
    let [mut low, mut high] = old;
    // SAFETY: reads and writes the caller's two words. The compiler keeps rbx for itself, so it is
    // as before at the end. In place of an intrinsic, since the compiler may put that into a
    // function without the feature, and then calls a function that does not exist.
    unsafe {
        core::arch::asm!(
            "xchg {low}, rbx",
            "lock cmpxchg16b [{at}]",
            "mov rbx, {low}",
            at = in(reg) at,
            low = inout(reg) new[0] => _,
            in("rcx") new[1],
            inout("rax") low,
            inout("rdx") high,
            options(nostack),
        );
    }
    [low, high]
}

use core::time::Duration;
use std::time::Instant;

#[cfg(not(loom))]
pub use parking_lot::{Mutex, MutexGuard};

#[cfg(loom)]
pub use loom::sync::MutexGuard;

/// A mutex that the model checker knows.
#[cfg(loom)]
#[derive(Debug)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    /// Makes one that is free.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    /// Locks it.
    pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("a panic ends the model")
    }
}

/// Where a thread waits with a [`Mutex`] for another one.
pub struct Condvar {
    #[cfg(not(loom))]
    condvar: parking_lot::Condvar,
    #[cfg(loom)]
    condvar: loom::sync::Condvar,
}

impl Condvar {
    /// Makes one.
    #[cfg(not(loom))]
    pub fn new() -> Condvar {
        Condvar { condvar: parking_lot::Condvar::new() }
    }

    /// Makes one.
    #[cfg(loom)]
    pub fn new() -> Condvar {
        Condvar { condvar: loom::sync::Condvar::new() }
    }

    /// Wakes a thread that waits.
    pub fn notify_one(&self) {
        self.condvar.notify_one();
    }

    /// Waits until another thread wakes this one, for at most this time. Returns whether it has
    /// passed.
    #[cfg(not(loom))]
    pub fn wait_for<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        most: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let late = self.condvar.wait_for(&mut guard, most).timed_out();
        (guard, late)
    }

    /// Waits until another thread wakes this one. No time passes in a model: none at all has passed
    /// at once, and any other never does.
    #[cfg(loom)]
    pub fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        if most.is_zero() {
            return (guard, true);
        }
        (self.condvar.wait(guard).expect("a panic ends the model"), false)
    }
}

/// Whether this time has passed since then. In a model as for [`Condvar::wait_for`].
pub fn has_passed(most: Duration, since: Instant) -> bool {
    if cfg!(loom) { most.is_zero() } else { since.elapsed() >= most }
}

/// Tells the processor (or the model checker) that this thread only waits for another one.
#[inline]
pub fn spin_hint() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// A full barrier: no access after it is done before an access before it, not even a load before a
/// store. A locked instruction on the own stack is cheaper than `mfence`, and orders as much here.
/// It is on a word below the stack pointer, as in Linux: a return that follows would have to wait
/// for a locked instruction on the word at the stack pointer, where its address is.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline]
pub fn full_fence() {
    // SAFETY: the 128 bytes below the stack pointer belong to the running function (the ABI's red
    // zone, on which leaf functions have their variables), so they are mapped and writable, no
    // signal handler uses them, and no other thread does. These bytes keep their value: the
    // instruction is atomic, so that nothing can be stored there between its load and its store.
    unsafe { core::arch::asm!("lock or dword ptr [rsp - 8], 0", options(nostack)) }
}

/// A full barrier: no access after it is done before an access before it, not even a load before a
/// store.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
#[inline]
pub fn full_fence() {
    // SeqCst: store, then load something else (Dekker) is ordered by nothing weaker.
    fence(Ordering::SeqCst);
}

/// Counts a number of 32 bits down by `STEP`, at `OFFSET` after the begin of `of`. Returns whether
/// it is negative now. Threads that count at once may lose each other's steps. Two instructions,
/// where an atomic load and store take four.
///
/// # Safety
/// There is an `AtomicI32` in `of`.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
pub unsafe fn count_at<T, const OFFSET: usize, const STEP: i32>(of: &T) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        core::arch::asm!(
            "sub dword ptr [{of} + {offset}], {step}",
            "js {ended}",
            of = in(reg) of,
            offset = const OFFSET,
            step = const STEP,
            ended = label { return true },
            options(nostack),
        );
    }
    false
}

/// Counts by one like [`count_at`], after a [`full_fence`]: the locked instruction of the barrier
/// is the one that counts.
///
/// # Safety
/// There is an `AtomicI32` in `of`.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
pub unsafe fn count_with_fence<T, const OFFSET: usize>(of: &T) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        core::arch::asm!(
            "lock sub dword ptr [{of} + {offset}], 1",
            "js {ended}",
            of = in(reg) of,
            offset = const OFFSET,
            ended = label { return true },
            options(nostack),
        );
    }
    false
}

/// Counts a number of 32 bits down by `STEP`, at `OFFSET` after the begin of `of`. Returns whether
/// it is negative now. Threads that count at once may lose each other's steps.
///
/// # Safety
/// There is an `AtomicI32` in `of`.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
#[inline(always)]
pub unsafe fn count_at<T, const OFFSET: usize, const STEP: i32>(of: &T) -> bool {
    // SAFETY: guaranteed by the caller.
    let count = unsafe { &*core::ptr::from_ref(of).byte_add(OFFSET).cast::<AtomicI32>() };
    // Relaxed: it orders nothing.
    let left = count.load(Ordering::Relaxed) - STEP;
    count.store(left, Ordering::Relaxed);
    left < 0
}

/// Counts by one like [`count_at`], after a [`full_fence`].
///
/// # Safety
/// There is an `AtomicI32` in `of`.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
#[inline(always)]
pub unsafe fn count_with_fence<T, const OFFSET: usize>(of: &T) -> bool {
    full_fence();
    // SAFETY: guaranteed by the caller.
    unsafe { count_at::<T, OFFSET, 1>(of) }
}

/// A full barrier right after an atomic read-modify-write of this thread. On x86 that
/// read-modify-write is one itself, so that only the compiler has to keep the order.
#[inline]
pub fn fence_after_rmw() {
    // SeqCst: as in `full_fence`.
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    fence(Ordering::SeqCst);
}

/// The value, computed here, as an integer or a pointer that the compiler knows nothing about.
/// Otherwise the compiler moves the computation after later branches and keeps all its operands in
/// registers until there; the fast path would have to save registers for that. Costs no
/// instruction.
#[cfg(not(loom))]
#[macro_export]
macro_rules! computed {
    ($value:expr) => {{
        #[allow(unused_mut)]
        let mut value = $value;
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        #[allow(clippy::pointers_in_nomem_asm_block)] // it accesses none
        // SAFETY: a comment, which changes nothing.
        unsafe {
            core::arch::asm!(
                "/* {0:r} */", inout(reg) value, options(nostack, nomem, preserves_flags)
            );
        }
        value
    }};
}
#[cfg(not(loom))]
pub use computed;
