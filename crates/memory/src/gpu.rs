//! Whether a run-time library of a GPU is loaded, and so whether memory of this process may be
//! memory of a GPU, which loads and stores do not reach. `sys::gpu` asks such a library.
//!
//! The fast path cannot ask. It serves no window unless it is known that no such library is loaded
//! ([`are_absent`], `window::library_loads`). A library may be loaded at any time, by dlopen of any
//! thread. Our dlopen announces it ([`may_come`]), and cannot tell when the library is loaded: it
//! jumps to that of the C library, which reads the address of its caller.
//!
//! | [`STATE`], low bits | meaning                                                               |
//! |---------------------|-----------------------------------------------------------------------|
//! | [`UNSURE`]          | no call has searched since a library may have been loaded             |
//! | [`ABSENT`]          | none is loaded                                                        |
//! | [`PRESENT`]         | there is one                                                          |
//! | [`WATCHED`]         | none is loaded, and full calls look at each transfer ([`watch`])      |
//!
//! The bits above count the announcements, so that a call that has searched does not miss one. A
//! search is of use only when the announced load is over. The announcing thread itself searches in
//! a later call. Another thread waits for the loader's lock, which that thread may not have taken
//! yet, and believes the answer only when some time has passed ([`SOON`]).

use crate::number::Number;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use crate::sys::gpu::{MemoryKind, Runtimes};
use crate::sys::life::now_ns;
use crate::sys::{self, dl};
use core::ptr;
use parking_lot::Mutex;

static STATE: AtomicU64 = AtomicU64::new(UNSURE);
const UNSURE: u64 = 0;
const ABSENT: u64 = 1;
const PRESENT: u64 = 2;
const WATCHED: u64 = 3;
const COUNT: u64 = 4;

/// Whether [`watch`] was called.
static WATCHES: AtomicBool = AtomicBool::new(false);

/// The thread of the announcements since the last search, and a number that each one changes; 0:
/// there was none.
static ANNOUNCER: AtomicU64 = AtomicU64::new(0);
/// The bits of the number in [`ANNOUNCER`].
const NUMBER_BITS: u32 = 16;
/// In place of a thread: there are several.
const SEVERAL: u64 = u64::MAX >> NUMBER_BITS;

/// The time of the last announcement, in nanoseconds.
static ANNOUNCED: AtomicU64 = AtomicU64::new(0);
/// The nanoseconds from an announcement in which its thread has begun to load.
const SOON: u64 = 100_000_000;

/// The libraries that were found; null: none. Never freed: a thread may use them.
static FOUND: AtomicPtr<Runtimes> = AtomicPtr::new(ptr::null_mut());

/// The state of the process at the last search: the changes of its libraries, and what was found.
static SEARCHED: Mutex<Option<(u64, Option<&'static Runtimes>)>> = Mutex::new(None);

/// A window over more bytes than this may have memory of any kind inside.
const LARGE: u64 = 1 << 40;

/// What is known without a search.
pub enum Presence {
    /// no library is loaded
    Absent,
    /// these are loaded
    Present(&'static Runtimes),
    /// [`search`] tells
    Unsure,
    /// no library is loaded, and [`watch`] was called
    Watched,
}

/// Returns what is known without a search.
#[inline]
pub fn known() -> Presence {
    // Acquire: pairs with the Release in `search`.
    match STATE.load(Ordering::Acquire) % COUNT {
        ABSENT => Presence::Absent,
        UNSURE => Presence::Unsure,
        WATCHED => Presence::Watched,
        _ => found().map_or(Presence::Unsure, Presence::Present),
    }
}

/// Whether it is known without a search that no library is loaded.
#[inline(always)]
pub fn is_known_absent() -> bool {
    const { assert!(ABSENT % 2 == 1 && WATCHED % 2 == 1 && UNSURE % 2 + PRESENT % 2 == 0) };
    // Acquire: as in `known`.
    STATE.load(Ordering::Acquire) % 2 == 1
}

fn found() -> Option<&'static Runtimes> {
    // Acquire: pairs with the Release in `runtimes`.
    // SAFETY: null, or leaked there.
    unsafe { FOUND.load(Ordering::Acquire).as_ref() }
}

/// Whether it is known that no library is loaded. SeqCst: a thread that enters a window for the
/// fast path and asks after that, and one that announces a load and then takes windows out: the
/// first one finds the announcement, or the other one finds the window.
pub fn are_absent() -> bool {
    crate::sync::fence(Ordering::SeqCst);
    matches!(STATE.load(Ordering::SeqCst) % COUNT, ABSENT | WATCHED)
}

/// Lets all full calls of this process that move data take the way of those with buffers of a GPU,
/// from now on: a window does more in its transfers than others.
pub fn watch() {
    // Release: pairs with the Acquire in `is_watched`. A search that has not seen it fails.
    WATCHES.store(true, Ordering::Release);
    let unsure = |before: u64| Some((before / COUNT + 1) * COUNT + UNSURE);
    let _ = STATE.fetch_update(Ordering::AcqRel, Ordering::Relaxed, unsure);
}

/// Whether [`watch`] was called.
pub fn is_watched() -> bool {
    // Acquire: pairs with the Release in `watch`.
    WATCHES.load(Ordering::Acquire)
}

/// Announces that this thread is about to load a library of any kind. The caller then takes all
/// windows from the fast path of calls that move data.
pub fn may_come() {
    ANNOUNCED.store(now_ns(), Ordering::Relaxed); // the next line releases it
    let own = this_thread();
    let announce = |before: u64| {
        let (thread, number) = (before >> NUMBER_BITS, before.wrapping_add(1) % (1 << NUMBER_BITS));
        let thread = if thread == 0 || thread == own { own } else { SEVERAL };
        Some(thread << NUMBER_BITS | number)
    };
    // AcqRel: pairs with the Acquire in `search`, which sees the time then.
    let _ = ANNOUNCER.fetch_update(Ordering::AcqRel, Ordering::Acquire, announce);
    let unsure = |before: u64| Some((before / COUNT + 1) * COUNT + UNSURE);
    // SeqCst, with the fence: see `are_absent`.
    let _ = STATE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, unsure);
    crate::sync::fence(Ordering::SeqCst);
}

/// Searches for libraries. If the announced loads are over, the answer is known until the next
/// announcement.
#[cold]
pub fn search() -> Option<&'static Runtimes> {
    // Acquire: what is read below is no older than the announcements that this counts.
    let before = STATE.load(Ordering::Acquire);
    let announcer = ANNOUNCER.load(Ordering::Acquire);
    let thread = announcer >> NUMBER_BITS;
    let is_other = announcer != 0 && thread != this_thread();
    let is_over = !is_other || now_ns() > ANNOUNCED.load(Ordering::Relaxed).saturating_add(SOON);
    if is_other {
        dl::wait_for_loads();
    }
    let found = runtimes();
    let state = match found {
        Some(_) => PRESENT,
        None if is_watched() => WATCHED,
        None => ABSENT,
    };
    let after = before / COUNT * COUNT + state;
    // Release: pairs with the Acquire in `known`.
    let order = (Ordering::AcqRel, Ordering::Relaxed);
    if is_over && STATE.compare_exchange(before, after, order.0, order.1).is_ok() {
        let _ = ANNOUNCER.compare_exchange(announcer, 0, order.0, order.1);
    }
    found
}

/// Returns the libraries that are loaded. Searches all libraries only if one was loaded or
/// unloaded since the last call: a program may have hundreds of them.
pub fn runtimes() -> Option<&'static Runtimes> {
    let changes = dl::changes();
    if let (Some(changes), Some((looked, runtimes))) = (changes, *SEARCHED.lock())
        && changes == looked
    {
        return runtimes;
    }
    // No lock is held in calls of the loader: a library may call MPI while it is loaded.
    let libraries = sys::gpu::loaded();
    let known = found().filter(|known| known.are_of(&libraries));
    let new = match known {
        None if libraries.is_empty() => None,
        None => Some(&*Box::leak(Box::new(Runtimes::of(libraries)))),
        known => known,
    };
    let mut looked = SEARCHED.lock();
    let pointer = new.map_or(ptr::null_mut(), |new| ptr::from_ref(new).cast_mut());
    // Release: pairs with the Acquire in `found`.
    FOUND.store(pointer, Ordering::Release);
    *looked = changes.map(|changes| (changes, new));
    new
}

/// Returns whether such a library is loaded now.
pub fn is_loaded() -> bool {
    runtimes().is_some()
}

/// Returns whether the host MPI has to make a window over these bytes at an address, or over
/// new memory of the host: because they are memory of a GPU, or because buffers in such memory
/// could not be copied.
pub fn needs_mpi(memory: Option<(u64, u64)>) -> bool {
    let Some(runtimes) = runtimes() else { return false };
    let is_device = |address: u64| runtimes.kind(address) == MemoryKind::Device;
    !runtimes.know_all_memory()
        || memory.is_some_and(|(address, bytes)| match bytes {
            0 => false,
            bytes if bytes > LARGE => true,
            bytes => is_device(address) || is_device(address + (bytes - 1)),
        })
}

/// Whether a page from `first` to `end` is registered for a GPU, and so must stay where it is.
pub fn is_any_pinned(first: u64, end: u64, page: u64) -> bool {
    let Some(runtimes) = runtimes() else { return false };
    (first..end).step_by(page.to_usize()).any(|at| runtimes.kind(at) != MemoryKind::Host)
}

/// Returns a number of this thread other than 0 and [`SEVERAL`]: an address of its own.
fn this_thread() -> u64 {
    // SAFETY: always works.
    unsafe { libc::pthread_self() }.to_u64() % SEVERAL
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests change the state of the process.
    static TURN: Mutex<()> = Mutex::new(());

    #[test]
    fn a_thread_that_has_loaded_a_library_knows_at_its_next_call() {
        let _turn = TURN.lock();
        assert!(search().is_none());
        may_come();
        assert!(!are_absent() && matches!(known(), Presence::Unsure));
        assert!(search().is_none());
        assert!(are_absent() && matches!(known(), Presence::Absent));
    }

    #[test]
    fn another_thread_is_not_sure_at_once() {
        let _turn = TURN.lock();
        may_come();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(search().is_none());
                assert!(!are_absent(), "the load may not have begun");
                may_come();
            });
        });
        search();
        assert!(!are_absent(), "two threads may load");
        ANNOUNCED.store(now_ns() - SOON - 1, Ordering::Relaxed);
        search();
        assert!(are_absent());
    }

    #[test]
    fn no_library_means_no_memory_of_a_gpu() {
        assert!(!is_loaded() && !needs_mpi(None) && !needs_mpi(Some((0, u64::MAX))));
        assert!(!is_any_pinned(0, 1 << 20, 4096));
    }
}
