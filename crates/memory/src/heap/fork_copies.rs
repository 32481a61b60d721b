//! The heap in a child of fork(2). For the program, memory of MPI_Alloc_mem belongs to its process
//! as that of malloc does: parent and child have each their own after the fork. The chunks are
//! shared, so the child copies the pages of such memory that were ever touched, and the parent
//! waits until the child has done so. Memory of windows stays shared, and lies in pages of its own.
//! The parent's heap is locked meanwhile, so the child finds it consistent.
//!
//! Not for children that run another program at once by vfork, posix_spawn, system or popen: these
//! calls run no handlers. Not covered: clone(2) and syscall(SYS_fork), which call no handlers
//! either. For _Fork, [`around_fork`] takes their place.

#![allow(clippy::missing_safety_doc)] // callbacks: called by the C library at a fork

use super::{HEAP, HeapRange, HeapState};
use crate::number::Number;
use crate::sync::{AtomicBool, Ordering};
use crate::sys::fork::{self, SegmentPart};
use crate::sys::memory_limits;
use parking_lot::Mutex;
use parking_lot::lock_api::RawMutex as _;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::{Once, OnceLock};

/// State that is kept from before a fork to after it. Invariant: only the thread that holds the
/// lock of the heap touches it.
struct Fork {
    /// by which the parent waits until its child has copied memory; `None`: there is none to copy
    pipe: Option<(PipeReader, PipeWriter)>,
    /// whether the node has memory for copies
    copied: bool,
}

static FORK: Mutex<Fork> = Mutex::new(Fork { pipe: None, copied: false });

/// Parts of chunks that are mapped at other addresses, too, and that belong to this process alone
/// as memory of MPI_Alloc_mem does. The functions are called around each fork, as those for
/// [`fork::at_fork`]; the lock of these parts comes ahead of that of the heap.
pub struct ForkHooks {
    /// locks them
    pub before: fn(),
    /// shows all of them; called between the other functions, in parent and child
    pub parts: fn(&mut dyn FnMut(SegmentPart)),
    /// unlocks them in the parent
    pub in_parent: fn(),
    /// makes them usable in the child, which has no such parts
    pub in_child: fn(),
}

static FORK_HOOKS: OnceLock<&'static ForkHooks> = OnceLock::new();

/// Makes children copy from now on, these parts too.
pub fn set_fork_hooks(hooks: &'static ForkHooks) {
    let _ = FORK_HOOKS.set(hooks);
    watch();
}

/// Makes children copy from now on. Called when memory is allocated that a child would share.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        WATCHES.store(true, Ordering::Relaxed);
        fork::at_fork(before, in_parent, in_child);
    });
}

/// Makes a child by `fork`, which runs no handlers, with those of this file around it.
pub fn around_fork(fork: impl FnOnce() -> i32) -> i32 {
    // Relaxed: what this thread has allocated or adopted set it in this thread.
    if !WATCHES.load(Ordering::Relaxed) {
        return fork();
    }
    // SAFETY: called as the C library calls them around a fork.
    unsafe { before() };
    let answer = fork();
    // SAFETY: called as the C library calls them around a fork; `errno` is kept for the caller.
    unsafe {
        let errno = *libc::__errno_location();
        if answer == 0 {
            in_child()
        } else {
            in_parent()
        }
        *libc::__errno_location() = errno;
    }
    answer
}

/// Whether children copy.
static WATCHES: AtomicBool = AtomicBool::new(false);

/// Whether memory belongs to the process that this one was forked from, which keeps it.
pub fn is_inherited(address: u64) -> bool {
    let state = HEAP.state();
    state.inherited.iter().any(|chunk| chunk.offset_of(address, 1).is_some())
}

/// Shows the parts of chunks that hold allocated memory, as few parts as possible.
fn parts<'a>(leases: impl Iterator<Item = &'a HeapRange>, mut show: impl FnMut(SegmentPart)) {
    let mut last: Option<SegmentPart> = None;
    for lease in leases {
        let (first, bytes) = lease.pages();
        let base = lease.chunk.mapping.base().wrapping_add(first.to_usize());
        let part = SegmentPart { name: lease.chunk.name, offset: first, base, bytes };
        match &mut last {
            Some(last) if last.name == part.name && first <= last.offset + last.bytes => {
                last.bytes = last.bytes.max(first + bytes - last.offset);
            }
            _ => {
                if let Some(last) = last.replace(part) {
                    show(last);
                }
            }
        }
    }
    if let Some(last) = last {
        show(last);
    }
}

/// Shows all parts that a child copies.
fn all_parts(state: &HeapState, show: &mut dyn FnMut(SegmentPart)) {
    parts(state.allocated.values(), &mut *show);
    FORK_HOOKS.get().inspect(|hooks| (hooks.parts)(show));
}

/// Before the fork: locks the heap, and checks whether the node has memory for copies.
unsafe extern "C" fn before() {
    let hooks = FORK_HOOKS.get();
    hooks.inspect(|hooks| (hooks.before)());
    let state = HEAP.state();
    let mut fork = FORK.lock();
    let (mut bytes, mut count) = (0, 0);
    all_parts(&state, &mut |part| (bytes, count) = (bytes + part.data_bytes(), count + 1));
    if count > 0 {
        fork.copied = memory_limits::is_available(bytes);
        fork.pipe = std::io::pipe().ok();
    }
    std::mem::forget(state); // until after the fork
}

/// Runs in the parent, also if fork(2) failed: waits for the child, if there is one, and unlocks
/// the heap.
unsafe extern "C" fn in_parent() {
    let pipe = FORK.lock().pipe.take();
    if let Some((mut read, write)) = pipe {
        drop(write);
        // The child writes a byte, because a child of another thread may hold the other end for
        // longer. An end without a byte: the child has ended, or there is none.
        let _ = read.read_exact(&mut [0]);
    }
    // SAFETY: `before` has locked it in this thread.
    unsafe { HEAP.state.force_unlock() };
    FORK_HOOKS.get().inspect(|hooks| (hooks.in_parent)());
}

/// Runs in the child, which has no other thread: makes the child's copies, and unlocks the heap.
unsafe extern "C" fn in_child() {
    // SAFETY: `before` has locked it in this thread.
    let state = unsafe { &*HEAP.state.data_ptr() };
    let (pipe, copied) = {
        let mut fork = FORK.lock();
        (fork.pipe.take(), fork.copied)
    };
    all_parts(state, &mut |part| {
        // SAFETY: where the chunk is mapped; there is no other thread.
        unsafe { part.make_private(copied) };
    });
    if let Some((_read, mut write)) = pipe {
        // The parent's other end is open still, so nothing is raised (SIGPIPE).
        let _ = write.write_all(&[0]);
    }
    // Threads of the parent that wait for the lock of the heap, or were about to, do not exist
    // here. Waking them could wait for one of their locks. So the lock is initialised again instead
    // of unlocked.
    // SAFETY: no other thread uses it; the state is consistent, because this thread had locked it.
    unsafe { core::ptr::from_ref(HEAP.state.raw()).cast_mut().write(parking_lot::RawMutex::INIT) };
    FORK_HOOKS.get().inspect(|hooks| (hooks.in_child)());
}
