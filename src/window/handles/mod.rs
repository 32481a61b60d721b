//! Memory handles (docs/decisions/0033): memory of one process that others access without an epoch.
//! [`MemoryHandle`] is what FOMPI_Mem points to. `epoch::memory_handles` has the protocol, `packed`
//! the form that is sent to other processes, `records` the words of the owner, `memory` the access.
//!
//! | state of a [`MemoryHandle`] | its memory | the bytes of its fast path |
//! |-----------------------------|------------|----------------------------|
//! | in use, mapped here         | `Some`     | those of the memory        |
//! | in use, elsewhere           | `Some`     | 0                          |
//! | ended, or free              | `None`     | 0                          |
//!
//! A handle that has ended is used again for another one, and is never given back: a program that
//! passes it nevertheless gets an error, or means the other one.

pub mod completion;
mod handle_memory;
mod handle_records;
pub mod packed;

use super::Window;
use crate::datatype::basic::Basic;
use crate::epoch::memory_handles::{Announced, announce, is_valid};
use crate::error::{Error, Result};
use crate::fabric::Way;
use crate::fabric::shm::mapped::copy;
use crate::memory::gpu;
use crate::messages;
use crate::mpi::{Handle, Host};
use crate::number::Number;
use crate::sync::{AtomicPtr, AtomicU64, Ordering, compiler_barrier, computed};
use core::ptr;
pub use handle_memory::HandleMemory;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A handle of this process.
#[repr(C, align(64))]
pub struct MemoryHandle {
    /// the first byte, as this process reaches it
    at: AtomicPtr<u8>,
    /// the bytes that fast-path calls reach
    bytes: AtomicU64,
    validity: AtomicPtr<AtomicU64>,
    generation: AtomicU64,
    /// the word in which this process announces
    announced: AtomicPtr<AtomicU64>,
    window: AtomicPtr<Window>,
    host: AtomicPtr<Host>,
    /// the word with the pass of this rank at the owner (`epoch::lock::passes`), as in a target
    pass: AtomicPtr<AtomicU64>,
    memory: RwLock<Option<Arc<HandleMemory>>>,
}

/// Handles that are free.
static FREE: Mutex<Vec<&'static MemoryHandle>> = Mutex::new(Vec::new());

/// Handles that are in use: the address of the window, and that of the handle.
static IN_USE: Mutex<BTreeMap<(usize, usize), &'static MemoryHandle>> = Mutex::new(BTreeMap::new());

impl MemoryHandle {
    fn new() -> MemoryHandle {
        MemoryHandle {
            at: AtomicPtr::default(),
            bytes: AtomicU64::new(0),
            validity: AtomicPtr::default(),
            generation: AtomicU64::new(0),
            announced: AtomicPtr::default(),
            window: AtomicPtr::default(),
            host: AtomicPtr::default(),
            pass: AtomicPtr::default(),
            memory: RwLock::new(None),
        }
    }

    /// Returns a handle of memory.
    pub fn of(memory: HandleMemory) -> &'static MemoryHandle {
        let memory = Arc::new(memory);
        let new = || Box::leak(Box::new(MemoryHandle::new()));
        let handle = FREE.lock().pop().unwrap_or_else(|| new());
        // Relaxed: the program hands the handle to other threads behind this call.
        let order = Ordering::Relaxed;
        handle.window.store(ptr::from_ref(memory.window).cast_mut(), order);
        handle.host.store(memory.window.host_address().cast_mut(), order);
        if let Some(parts) = memory.mapped_parts() {
            handle.at.store(parts.at, order);
            handle.validity.store(parts.validity.cast_mut(), order);
            handle.announced.store(parts.announced.cast_mut(), order);
            handle.pass.store(parts.pass.cast_mut(), order);
            handle.generation.store(memory.packed.generation, order);
            handle.bytes.store(memory.packed.bytes, order);
        }
        IN_USE.lock().insert(handle.key(memory.window), handle);
        *handle.memory.write() = Some(memory);
        handle
    }

    /// Returns the memory of what a program has passed as a handle.
    ///
    /// # Safety
    /// It is null, or a handle that [`MemoryHandle::of`] has returned at any time.
    pub unsafe fn memory(given: *const MemoryHandle) -> Result<Arc<HandleMemory>> {
        // SAFETY: a handle is never given back.
        let handle = unsafe { given.as_ref() };
        let memory = handle.and_then(|handle| handle.memory.read().clone());
        memory.ok_or(Error::Wrong(&messages::MEM_INVALID))
    }

    /// Ends a handle.
    ///
    /// # Safety
    /// As for [`MemoryHandle::memory`], and it is no null.
    pub unsafe fn end(given: *const MemoryHandle) {
        // SAFETY: guaranteed by the caller.
        let handle = unsafe { &*given };
        let Some(memory) = handle.forget() else { return };
        IN_USE.lock().remove(&handle.key(memory.window));
        FREE.lock().push(handle);
    }

    /// Its key in the table of handles in use.
    fn key(&self, window: &Window) -> (usize, usize) {
        (ptr::from_ref(window).addr(), ptr::from_ref(self).addr())
    }

    /// Takes its memory.
    fn forget(&self) -> Option<Arc<HandleMemory>> {
        // Relaxed: no thread uses a handle that another one ends.
        self.bytes.store(0, Ordering::Relaxed);
        self.memory.write().take()
    }

    /// Carries out a put or a get of `count` elements of a predefined type without holes, on memory
    /// that is mapped here. Returns `Some` if the arguments were such, and the bytes are copied.
    ///
    /// `ONE_WORD`: only transfers of four or eight bytes, which need no call, so that the caller
    /// saves no register. On paper, for eight bytes: 14 loads, 3 stores, 2 multiplications and 12
    /// branches.
    ///
    /// # Safety
    /// As for [`MemoryHandle::memory`], and the elements at `here` may be read or, for a get,
    /// written.
    #[inline(always)]
    pub unsafe fn transfer<const ONE_WORD: bool>(
        given: *const MemoryHandle,
        way: Way,
        (here, count, datatype): (*mut u8, i64, Handle),
        disp: i64,
    ) -> Option<()> {
        // SAFETY: guaranteed by the caller.
        let handle = unsafe { given.as_ref()? };
        // SAFETY: each handle that was ever in use has a host MPI, which is never freed.
        let host = unsafe { &*computed!(handle.host.load(Ordering::Relaxed)) };
        let known = host.tables.types.find(datatype)?;
        // No bytes for a type with holes. A negative length is larger than any memory.
        let length = count.checked_mul(i64::from(known.dense_size))?.cast_unsigned();
        let length = computed!(length);
        // Relaxed, as all below: as in `of`.
        let bytes_left = handle.bytes.load(Ordering::Relaxed).checked_sub(disp.cast_unsigned())?;
        // One comparison: 0 bytes become the largest number.
        if length.wrapping_sub(1) >= bytes_left {
            return None;
        }
        if ONE_WORD && length != 8 && length != 4 {
            return None;
        }
        // SAFETY: a handle with bytes has a window, which lives as long as it.
        let window = unsafe { &*handle.window.load(Ordering::Relaxed) };
        if window.is_due::<1>() || window.epochs.has_threads() || !gpu::is_known_absent() {
            return None;
        }
        // SAFETY: the side of the handle was checked, the caller guarantees the other one.
        unsafe {
            match length {
                8 => handle.copy_announced(way, here, disp, 8),
                _ if ONE_WORD => handle.copy_announced(way, here, disp, 4),
                _ => handle.copy_announced(way, here, disp, length),
            }
        }
    }

    /// Announces an access to an element of a predefined type that one atomic instruction may
    /// change now, and returns its address and the function with that instruction, as
    /// [`Quick::word`](super::quick_window::Quick::word). The access ends with the announcement.
    ///
    /// # Safety
    /// As for [`MemoryHandle::memory`].
    #[inline(always)]
    pub unsafe fn word<K>(
        given: *const MemoryHandle,
        (disp, datatype): (i64, Handle),
        kernel: impl FnOnce(&Host, Basic) -> Option<K>,
    ) -> Option<(Announced<'static>, *mut u8, K)> {
        // SAFETY: as in `transfer`; handles are never given back.
        let handle: &'static MemoryHandle = unsafe { given.as_ref()? };
        // Relaxed, as all below that says nothing: as in `of`.
        let order = Ordering::Relaxed;
        // SAFETY: as in `transfer`.
        let host = unsafe { &*computed!(handle.host.load(order)) };
        let known = host.tables.types.find(datatype)?;
        let kernel = kernel(host, known.basic)?;
        let bytes_left = handle.bytes.load(order).checked_sub(disp.cast_unsigned())?;
        // For 0 bytes the mask has all bits.
        let mask = u64::from(known.size).wrapping_sub(1);
        let at = handle.at.load(order).wrapping_add(disp.cast_unsigned().to_usize());
        if mask >= bytes_left || at.addr().to_u64() & mask != 0 {
            return None;
        }
        // SAFETY: a handle with bytes has a window, a word with passes, an announcement and a
        // validity, which live as long as it.
        let (window, pass, word, validity) = unsafe {
            (
                &*handle.window.load(order),
                &*handle.pass.load(order),
                &*handle.announced.load(order),
                &*handle.validity.load(order),
            )
        };
        if window.is_due::<1>() || window.epochs.has_threads() || !gpu::is_known_absent() {
            return None;
        }
        // Acquire: as in `Quick::word`.
        if pass.load(Ordering::Acquire) & window.pass == 0 {
            return None;
        }
        let announced = announce(word)?;
        compiler_barrier();
        // Acquire: as in `epoch::memory_handles::sees`.
        let generation = handle.generation.load(order);
        is_valid(validity.load(Ordering::Acquire), generation).then_some((announced, at, kernel))
    }

    /// Copies bytes of the handle between an announcement and its end.
    ///
    /// # Safety
    /// The handle has `bytes` bytes at `disp`, mapped here, and those at `here` may be read or, for
    /// a get, written.
    #[inline(always)]
    unsafe fn copy_announced(&self, way: Way, here: *mut u8, disp: i64, bytes: u64) -> Option<()> {
        // Relaxed, as all below: as in `of`.
        let order = Ordering::Relaxed;
        // SAFETY: a handle with bytes has a word and a validity, which live as long as it.
        let (word, validity) =
            unsafe { (&*self.announced.load(order), &*self.validity.load(order)) };
        let _announced = announce(word)?;
        compiler_barrier();
        // Acquire: as in `epoch::memory_handles::sees`.
        if !is_valid(validity.load(Ordering::Acquire), self.generation.load(order)) {
            return None;
        }
        let at = self.at.load(order).wrapping_add(disp.cast_unsigned().to_usize());
        // SAFETY: guaranteed by the caller.
        unsafe {
            match way {
                Way::Put => copy(at, here, bytes),
                Way::Get => copy(here, at, bytes),
            }
        }
        Some(())
    }
}

/// Ends all handles of a window that is freed, when no process accesses its memory any more.
pub fn end_all(window: &Window) {
    let at = ptr::from_ref(window).addr();
    let mut in_use = IN_USE.lock();
    let mut behind = in_use.split_off(&(at, usize::MIN));
    let mut others = behind.split_off(&(at, usize::MAX));
    in_use.append(&mut others);
    drop(in_use);
    for handle in behind.into_values() {
        if let Some(memory) = handle.forget() {
            memory.end();
        }
        FREE.lock().push(handle);
    }
}
