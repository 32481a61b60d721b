//! Memory handles (docs/decisions/0033): making, packing and ending them, and completion. The
//! transfers are in `handle_transfers`. All names are libfompi's own.

use super::answer::{check_output, on_window, raise, raise_alone};
use super::{MPI_Aint, MPI_Info, MPI_Win};
use crate::error::{Error, Result};
use crate::memory::heap;
use crate::messages;
use crate::mpi::{Host, hints};
use crate::number::Offset;
use crate::sys::page_bytes;
use crate::transfer::Place;
use crate::window::countdown::QUICK_PER_FULL;
use crate::window::handles::packed::BYTES;
use crate::window::handles::{HandleMemory, MemoryHandle};
use crate::window::{LocalWindow, Window, synchronise};
use core::ffi::{c_int, c_void};
use std::sync::Arc;

/// A memory handle of a program.
pub type FOMPI_Mem = *const MemoryHandle;

/// `FOMPI_ALL_RANKS`
pub(super) const ALL_RANKS: c_int = -3;

/// The answer for a window of the host MPI.
pub(super) fn unsupported() -> Result<()> {
    Err(Error::Wrong(&messages::NO_HANDLES))
}

/// Entries of functions with names of libfompi's own, for memory handles. In pass-through mode they
/// raise an error on the window of the call, or on none. `quick`: a fast path, which is tried for
/// transfers of one word and then, if it has a name for that, for those of any length.
macro_rules! handle_entries {
    ($(
        $(#[$doc:meta])*
        $name:ident [$window:expr] ($($argument:ident: $type:ty),* $(,)?)
            $(quick[$($one_word:ident)?] $quick:block)? $body:block
    )*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> core::ffi::c_int {
            #[cold]
            #[inline(never)]
            unsafe extern "C-unwind" fn in_full($($argument: $type),*) -> core::ffi::c_int {
                if $crate::abi::pass_through::may_apply() {
                    let text = $crate::messages::filled!($crate::messages::NO_HANDLES);
                    let name = stringify!($name);
                    let refused =
                        $crate::abi::pass_through::refuse_own_with(name, &text, |_| $window);
                    if let Some(code) = refused {
                        return code;
                    }
                }
                $body
            }
            $({
                $(const $one_word: bool = true;)?
                if $quick {
                    return 0;
                }
            })?
            #[inline(never)]
            unsafe extern "C-unwind" fn of_any_length($($argument: $type),*) -> core::ffi::c_int {
                $($({
                    const $one_word: bool = false;
                    if $quick {
                        return 0;
                    }
                })?)?
                // SAFETY: the caller's arguments.
                unsafe { in_full($($argument),*) }
            }
            // SAFETY: the caller's arguments.
            unsafe { of_any_length($($argument),*) }
        }
    )*};
}
pub(super) use handle_entries;

/// Executes a call on a memory handle: `ours` with the memory, on which a transfer may be.
///
/// # Safety
/// The caller's handle.
pub(super) unsafe fn on_memory(
    call: &'static str,
    mem: FOMPI_Mem,
    ours: impl FnOnce(Place<'_>, &HandleMemory) -> Result<()>,
) -> c_int {
    let host = Host::get();
    // SAFETY: guaranteed by the caller.
    let memory: Arc<HandleMemory> = match unsafe { MemoryHandle::memory(mem) } {
        Ok(memory) => memory,
        Err(error) => return raise_alone(call, host, error),
    };
    let (window, node) = (memory.window, memory.node());
    let result = ours(Place { host, window, node, memory: Some(&memory) }, &memory);
    if window.is_due::<QUICK_PER_FULL>() {
        window.countdown_ended();
    }
    match result {
        Ok(()) => 0,
        Err(error) => raise(call, host, window, error),
    }
}

/// Executes a call that makes a handle, and stores it.
///
/// # Safety
/// `mem` is null or points to a handle variable.
unsafe fn store(
    call: &'static str,
    win: MPI_Win,
    mem: *mut FOMPI_Mem,
    make: impl FnOnce(&'static Window) -> Result<HandleMemory>,
) -> c_int {
    on_window(
        call,
        Host::get(),
        win,
        |window, _| {
            check_output(mem)?;
            let handle: FOMPI_Mem = MemoryHandle::of(make(window)?);
            // SAFETY: guaranteed by the caller.
            unsafe { mem.write(handle) };
            Ok(())
        },
        |_| unsupported(),
    )
}

/// Executes a call that ends a handle, and stores FOMPI_MEM_NULL.
///
/// # Safety
/// `mem` is null or points to a handle variable.
unsafe fn end(
    call: &'static str,
    mem: *mut FOMPI_Mem,
    work: impl FnOnce(&HandleMemory) -> Result<()>,
) -> c_int {
    if let Err(error) = check_output(mem) {
        return raise_alone(call, Host::get(), error);
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let given = mem.read();
        let code = on_memory(call, given, |_, memory| work(memory));
        if code == 0 {
            MemoryHandle::end(given);
            mem.write(core::ptr::null());
        }
        code
    }
}

/// Does the work of FOMPI_Complete.
fn complete(window: &Window, node: &LocalWindow, rank: c_int, host: &Host) -> Result<()> {
    match rank {
        ALL_RANKS => synchronise::complete_all(window, node),
        _ if rank == host.constants.proc_null => Ok(()),
        _ => synchronise::complete_at(window, node, node.target(rank)?),
    }
}

handle_entries! {
    /// Exposes `size` bytes from `base`, memory that this process has, to the other processes of
    /// `win`, a window of MPI_Win_create_dynamic, and returns a handle of it. Local. The memory
    /// need not be attached, and handles may overlap. It stays mapped until the handle is withdrawn
    /// or the window freed. `info`: no keys. Cost: within a node no system call; over TCP an entry
    /// of a table; over an RDMA device a registration and a round trip. Any thread may call.
    /// Errors, here and below through the handler of the window: MPI_ERR_WIN, MPI_ERR_RMA_FLAVOR
    /// for another window, MPI_ERR_SIZE, MPI_ERR_ARG for a null pointer, MPI_ERR_RMA_ATTACH for
    /// memory of a GPU, MPI_ERR_NO_MEM, MPI_ERR_UNSUPPORTED_OPERATION for memory that is in part of
    /// MPI_Alloc_mem, and on a window of the host MPI.
    FOMPI_Mem_expose [win] (
        base: *mut c_void, size: MPI_Aint, info: MPI_Info, win: MPI_Win, mem: *mut FOMPI_Mem,
    ) {
        let _ = info;
        let base = base.expose_provenance() as u64;
        // SAFETY: the caller's pointer.
        unsafe {
            store("FOMPI_Mem_expose", win, mem, |window| {
                HandleMemory::expose(window, base, size as i64)
            })
        }
    }

    /// Allocates `size` bytes as MPI_Alloc_mem does, exposes them as FOMPI_Mem_expose does, and
    /// stores their address in the pointer variable at `baseptr`. Processes of the node access them
    /// by load and store. MPI_Free_mem frees them after the handle is withdrawn. `info`:
    /// mpi_minimum_memory_alignment. Local; any thread may call. Errors: those of MPI_Alloc_mem and
    /// FOMPI_Mem_expose.
    FOMPI_Mem_allocate [win] (
        size: MPI_Aint, info: MPI_Info, win: MPI_Win, baseptr: *mut c_void, mem: *mut FOMPI_Mem,
    ) {
        let host = Host::get();
        let make = |window| {
            check_output(baseptr)?;
            let wrong = || Error::Argument(&messages::MEM_SIZE, size as i64);
            let bytes = u64::try_from(size).map_err(|_| wrong())?;
            let alignment = hints::alignment_of(host, host.handle(info))?.max(page_bytes());
            let base = heap::allocate(bytes, alignment)?;
            let memory = HandleMemory::expose(window, base.expose_provenance() as u64, size as i64);
            if memory.is_err() {
                heap::release(base);
            }
            let memory = memory?;
            // SAFETY: the caller's pointer variable, of any type and alignment.
            unsafe { baseptr.cast::<*mut u8>().write_unaligned(base) };
            Ok(memory)
        };
        // SAFETY: the caller's pointer.
        unsafe { store("FOMPI_Mem_allocate", win, mem, make) }
    }

    /// Stores FOMPI_MEM_BYTES bytes that stand for a handle in all processes of its window: plain
    /// bytes, which may be sent, put or written to a file, any number of times. A handle of
    /// FOMPI_Mem_unpack may be packed, too. Local, about 0.1 us; any thread may call. Errors:
    /// MPI_ERR_ARG for no handle or a null pointer.
    FOMPI_Mem_pack [0] (mem: FOMPI_Mem, packed: *mut c_void) {
        // SAFETY: the caller's handle and buffer.
        unsafe {
            on_memory("FOMPI_Mem_pack", mem, |_, memory| {
                check_output(packed)?;
                packed.cast::<[u8; BYTES]>().write_unaligned(memory.pack());
                Ok(())
            })
        }
    }

    /// Returns a handle of the memory that FOMPI_Mem_pack has packed in a process of the window
    /// `win`. Local: nothing is sent, so the memory may be withdrawn by now; an access tells. The
    /// first handle of a segment of another process of the node costs two system calls. Any thread
    /// may call. Errors: MPI_ERR_ARG for bytes that no process of this window has packed, which
    /// includes those of another window, and for a null pointer; MPI_ERR_RMA_FLAVOR,
    /// MPI_ERR_UNSUPPORTED_OPERATION on a window of the host MPI.
    FOMPI_Mem_unpack [win] (packed: *const c_void, win: MPI_Win, mem: *mut FOMPI_Mem) {
        // SAFETY: the caller's bytes and pointer.
        unsafe {
            store("FOMPI_Mem_unpack", win, mem, |window| {
                check_output(packed)?;
                HandleMemory::unpack(window, &packed.cast::<[u8; BYTES]>().read_unaligned())
            })
        }
    }

    /// Stores the rank in the window of the process that has exposed the memory, its bytes, and in
    /// the pointer variable at `baseptr` the address at which loads and stores of this process
    /// reach it: NULL where none do. Loads and stores are not part of what FOMPI_Mem_withdraw waits
    /// for. Null pointers are allowed. Local; any thread may call. Errors: MPI_ERR_ARG for no
    /// handle.
    FOMPI_Mem_query [0] (
        mem: FOMPI_Mem, rank: *mut c_int, size: *mut MPI_Aint, baseptr: *mut c_void,
    ) {
        // SAFETY: the caller's handle and pointers.
        unsafe {
            on_memory("FOMPI_Mem_query", mem, |_, memory| {
                if !rank.is_null() {
                    rank.write(memory.rank().0.cast_signed());
                }
                if !size.is_null() {
                    size.write(memory.packed.bytes.cast_signed().to_isize());
                }
                if !baseptr.is_null() {
                    baseptr.cast::<*mut u8>().write_unaligned(memory.mapped());
                }
                Ok(())
            })
        }
    }

    /// Withdraws the memory of a handle of FOMPI_Mem_expose or FOMPI_Mem_allocate, in the process
    /// that called it, and stores FOMPI_MEM_NULL. When this returns, no access that began before
    /// touches the memory, and none begins: a later one fails with MPI_ERR_RMA_RANGE. Waits for the
    /// accesses under way, for no later ones, and not for processes that have ended. Cost: a
    /// membarrier(2), some microseconds; over TCP a lock; over an RDMA device a round trip and the
    /// end of a registration. Any thread may call, but no callback that the MPI runs within another
    /// call. Errors: MPI_ERR_ARG for no handle, or one of FOMPI_Mem_unpack; MPI_ERR_OTHER if the
    /// system refuses the barrier: then the memory stays exposed.
    FOMPI_Mem_withdraw [0] (mem: *mut FOMPI_Mem) {
        // SAFETY: the caller's pointer.
        unsafe {
            end("FOMPI_Mem_withdraw", mem, |memory| match memory.is_own() {
                true => memory.withdraw(),
                false => Err(Error::Wrong(&messages::MEM_NOT_OWNER)),
            })
        }
    }

    /// Forgets a handle of FOMPI_Mem_unpack, and stores FOMPI_MEM_NULL. No other thread uses the
    /// handle. Transfers that have begun are completed by FOMPI_Complete nevertheless. Local.
    /// Errors: MPI_ERR_ARG for no handle, or one of FOMPI_Mem_expose or FOMPI_Mem_allocate.
    FOMPI_Mem_release [0] (mem: *mut FOMPI_Mem) {
        // SAFETY: the caller's pointer.
        unsafe {
            end("FOMPI_Mem_release", mem, |memory| match memory.is_own() {
                true => Err(Error::Wrong(&messages::MEM_OF_OWNER)),
                false => Ok(()),
            })
        }
    }

    /// Waits until all operations of this process on a rank of `win`, or on all for
    /// FOMPI_ALL_RANKS, are done at the target: those by memory handles, and those on the window.
    /// No epoch is needed. Cost: that of MPI_Win_flush or MPI_Win_flush_all. Any thread may call.
    /// Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_RANGE if a transfer between nodes has used a
    /// handle that is withdrawn, MPI_ERR_OTHER if a process is lost, MPI_ERR_UNSUPPORTED_OPERATION
    /// on a window of the host MPI.
    FOMPI_Complete [win] (rank: c_int, win: MPI_Win) {
        let host = Host::get();
        on_window("FOMPI_Complete", host, win, |window, node| {
            complete(window, node, rank, host)
        }, |_| unsupported())
    }
}
