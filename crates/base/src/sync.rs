//! The only file that names atomics. Everything that is shared between threads or processes uses
//! these names, so that the same code runs on the machine's atomics and, with `--cfg loom`, under
//! the model checker. No other file may name `core::sync::atomic`. `Mutex` is for code that the
//! model checker runs.

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

/// Stores `new` at `at` if the two words there are `old`; returns the words before. Others may
/// change each word by the atomics above at the same time. Acquire and Release.
///
/// # Safety
/// `at` is a multiple of sixteen, and its bytes may be read and written. The processor has
/// cmpxchg16b.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[inline(always)]
pub unsafe fn compare_exchange_pair(at: *mut u64, old: [u64; 2], new: [u64; 2]) -> [u64; 2] {
    let [mut low, mut high] = old;
    // Not the intrinsic: if the compiler inlines it into a function without the feature cmpxchg16b,
    // it emits a call of a library function that is not linked.
    // SAFETY: reads and writes the caller's two words. The compiler keeps rbx for itself, so it is
    // as before at the end.
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

/// Tells the processor (or the model checker) that this thread only waits for another one.
#[inline]
pub fn spin_hint() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// A full barrier: all earlier accesses come before all later ones, also an earlier store before a
/// later load. A locked instruction on this thread's stack is cheaper than `mfence`. It uses
/// `[rsp - 8]`, below the stack pointer as in Linux: at `[rsp]` may be the return address, and a
/// following `ret` would wait for the locked instruction.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline]
pub fn full_fence() {
    // SAFETY: the 128 bytes below the stack pointer belong to the running function (the ABI's red
    // zone, on which leaf functions have their variables), so they are mapped and writable, no
    // signal handler uses them, and no other thread does. These bytes keep their value: the
    // instruction is atomic, so that nothing can be stored there between its load and its store.
    unsafe { core::arch::asm!("lock or dword ptr [rsp - 8], 0", options(nostack)) }
}

/// A full barrier: all earlier accesses come before all later ones, also an earlier store before a
/// later load.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
#[inline]
pub fn full_fence() {
    // SeqCst: nothing weaker orders a store before a load of another word.
    fence(Ordering::SeqCst);
}

/// Keeps the compiler from moving accesses across this place; the processor may still do so. For a
/// store and a later load between which another thread executes a barrier of all threads. The model
/// checker knows no such barrier: there it is a full one.
#[inline(always)]
pub fn compiler_barrier() {
    #[cfg(not(loom))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// Subtracts `STEP` from the `AtomicI32` that is `OFFSET` bytes into `object`, and returns whether
/// it is negative now. Concurrent subtractions may be lost. Two instructions, where an atomic load
/// and store take four.
///
/// # Safety
/// An `AtomicI32` is at byte `OFFSET` of `object`.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
pub unsafe fn subtract_at<T, const OFFSET: usize, const STEP: i32>(object: &T) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        core::arch::asm!(
            "sub dword ptr [{object} + {offset}], {step}",
            "js {ended}",
            object = in(reg) object,
            offset = const OFFSET,
            step = const STEP,
            ended = label { return true },
            options(nostack),
        );
    }
    false
}

/// Subtracts one like [`subtract_at`], and is a full barrier before that: one locked instruction
/// does both.
///
/// # Safety
/// An `AtomicI32` is at byte `OFFSET` of `object`.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
pub unsafe fn subtract_with_fence<T, const OFFSET: usize>(object: &T) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        core::arch::asm!(
            "lock sub dword ptr [{object} + {offset}], 1",
            "js {ended}",
            object = in(reg) object,
            offset = const OFFSET,
            ended = label { return true },
            options(nostack),
        );
    }
    false
}

/// Subtracts `STEP` from the `AtomicI32` that is `OFFSET` bytes into `object`, and returns whether
/// it is negative now. Concurrent subtractions may be lost.
///
/// # Safety
/// An `AtomicI32` is at byte `OFFSET` of `object`.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
#[inline(always)]
pub unsafe fn subtract_at<T, const OFFSET: usize, const STEP: i32>(object: &T) -> bool {
    // SAFETY: guaranteed by the caller.
    let count = unsafe { &*core::ptr::from_ref(object).byte_add(OFFSET).cast::<AtomicI32>() };
    // Relaxed: it orders nothing.
    let left = count.load(Ordering::Relaxed) - STEP;
    count.store(left, Ordering::Relaxed);
    left < 0
}

/// Subtracts one like [`subtract_at`], and is a full barrier before that.
///
/// # Safety
/// An `AtomicI32` is at byte `OFFSET` of `object`.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
#[inline(always)]
pub unsafe fn subtract_with_fence<T, const OFFSET: usize>(object: &T) -> bool {
    full_fence();
    // SAFETY: guaranteed by the caller.
    unsafe { subtract_at::<T, OFFSET, 1>(object) }
}

/// A full barrier right after an atomic read-modify-write of this thread. On x86 the
/// read-modify-write is itself a full barrier, so only the compiler must keep the order.
#[inline]
pub fn fence_after_rmw() {
    // SeqCst: as in `full_fence`.
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    fence(Ordering::SeqCst);
}

/// Makes the compiler compute the value at this point, and hides from it where the value comes from
/// (an empty asm block). Otherwise the compiler moves the computation after later branches and
/// keeps all its operands in registers until there; the fast path would have to save registers for
/// that. Costs no instruction.
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
