//! Creation and end of windows (MPI-4.1 §12.2).

use super::answer::{check_output, on_any_window, on_window, raise_alone, raise_on_comm};
use super::{MPI_Aint, MPI_Comm, MPI_Info, MPI_Win, duplicates, errhandler, keyvals};
use crate::error::Result;
use crate::mpi::Host;
use crate::mpi::comm::check;
use crate::number::{Number, Offset};
use crate::rank_numbers::Rank;
use crate::sync::Ordering;
use crate::window::create::{self, Failure, Made, WindowRequest};
use crate::window::registry::{self, Found};
use crate::window::{Flavor, LocalWindow};
use core::ffi::{c_int, c_void};
use core::ptr;

/// Creates a window and stores its handle and, for allocated memory, its address.
///
/// # Safety
/// `win` points to a window handle and `memory` to a pointer, or they are null.
unsafe fn make(
    flavor: Flavor,
    (base, size, disp_unit): (*mut c_void, isize, isize),
    (info, comm): (MPI_Info, MPI_Comm),
    memory: *mut c_void,
    win: *mut MPI_Win,
) -> c_int {
    let host = Host::get();
    let (call, info, comm) = (flavor.call(), host.handle(info), host.handle(comm));
    let request = WindowRequest { flavor, base, size, disp_unit, info, comm };
    let allocates = matches!(flavor, Flavor::Allocate | Flavor::Shared);
    let place = match allocates && size > 0 {
        true => check_output(win).and(check_output(memory)),
        false => check_output(win),
    };
    let (handle, base) = match create::make(host, request, place) {
        Ok(Made::Window(window)) => (window.handle.to_usize(), window.facts.base),
        Ok(Made::Native(native, base)) => (native, base),
        Err(Failure::Ours(error)) => {
            if !win.is_null() {
                // Open MPI's Fortran converts the handle to an integer, whatever the call returns.
                // SAFETY: the caller guarantees a pointer to a handle.
                unsafe { host.store(win, host.constants.win_null) };
            }
            return raise_on_comm(call, host, comm, error);
        }
        Err(Failure::Host(code)) => return code,
    };
    if !memory.is_null() {
        // SAFETY: the caller guarantees that `memory` points to a pointer.
        unsafe { memory.cast::<usize>().write_unaligned(base) };
    }
    // SAFETY: the caller guarantees that `win` points to a handle.
    unsafe { host.store(win, handle) };
    0
}

/// Stores the results of MPI_Win_shared_query.
///
/// # Safety
/// `baseptr` points to a pointer; `store` stores size and unit.
unsafe fn query(
    host: &Host,
    node: &LocalWindow,
    rank: c_int,
    baseptr: *mut c_void,
    store: impl FnOnce(isize, isize),
) -> Result<()> {
    check_output(baseptr)?;
    let rank = match rank == host.constants.proc_null {
        true => node.first_with_memory()?,
        false => Some(node.target(rank)?),
    };
    // If no rank exposes memory, the result is that of rank 0.
    let (base, bytes, unit) = node.part(rank.unwrap_or(Rank::FIRST))?;
    store(bytes.cast_signed().to_isize(), unit.cast_signed().to_isize());
    // SAFETY: the caller guarantees that `baseptr` points to a pointer.
    unsafe { baseptr.cast::<*mut u8>().write_unaligned(base) };
    Ok(())
}

entry! {
    /// Creates a window over memory of the program (MPI-4.1 §12.2.1). Collective: either all ranks
    /// create it, or none. Each rank accesses the memory by load and store if it lies in memory of
    /// MPI_Alloc_mem, otherwise by process_vm, and between nodes over the RDMA device; if none of
    /// them works, the window is delegated. Errors, by the handler of `comm`: MPI_ERR_COMM,
    /// MPI_ERR_SIZE, MPI_ERR_DISP, MPI_ERR_ARG, MPI_ERR_INFO, MPI_ERR_NO_MEM, MPI_ERR_OTHER.
    MPI_Win_create PMPI_Win_create (
        base: *mut c_void, size: MPI_Aint, disp_unit: c_int, info: MPI_Info, comm: MPI_Comm,
        win: *mut MPI_Win,
    ) {
        let place = (base, size, disp_unit.to_isize());
        // SAFETY: the arguments are the caller's.
        unsafe { make(Flavor::Create, place, (info, comm), ptr::null_mut(), win) }
    }

    /// Creates a window over memory of the program (MPI-4.1 §12.2.1), with a large displacement
    /// unit. Collective: either all ranks create it, or none. Each rank accesses the memory by load
    /// and store if it lies in memory of MPI_Alloc_mem, otherwise by process_vm, and between nodes
    /// over the RDMA device; if none of them works, the window is delegated. Errors, by the handler
    /// of `comm`: MPI_ERR_COMM, MPI_ERR_SIZE, MPI_ERR_DISP, MPI_ERR_ARG, MPI_ERR_INFO,
    /// MPI_ERR_NO_MEM, MPI_ERR_OTHER.
    MPI_Win_create_c PMPI_Win_create_c (
        base: *mut c_void, size: MPI_Aint, disp_unit: MPI_Aint, info: MPI_Info, comm: MPI_Comm,
        win: *mut MPI_Win,
    ) {
        let place = (base, size, disp_unit);
        // SAFETY: the arguments are the caller's.
        unsafe { make(Flavor::Create, place, (info, comm), ptr::null_mut(), win) }
    }

    /// Creates a window without memory (MPI-4.1 §12.2.4), to which each rank attaches regions
    /// later. Collective: either all ranks create it, or none. The transport is chosen for each
    /// region: load and store for memory of MPI_Alloc_mem, otherwise process_vm, and the RDMA
    /// device between nodes. Errors, by the handler of `comm`: MPI_ERR_COMM, MPI_ERR_ARG,
    /// MPI_ERR_INFO, MPI_ERR_NO_MEM, MPI_ERR_OTHER.
    MPI_Win_create_dynamic PMPI_Win_create_dynamic (
        info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win,
    ) {
        let nowhere = ptr::null_mut();
        // SAFETY: the arguments are the caller's.
        unsafe { make(Flavor::Dynamic, (nowhere, 0, 1), (info, comm), nowhere, win) }
    }

    /// Creates a window with memory of its own (MPI-4.1 §12.2.2). Collective: either all ranks
    /// create it, or none. The memory is a segment that all ranks of a node map, so they access it
    /// by load and store; other nodes access it over the RDMA device; without one the window is
    /// delegated. Errors, by the handler of `comm`: MPI_ERR_COMM, MPI_ERR_SIZE, MPI_ERR_DISP,
    /// MPI_ERR_ARG, MPI_ERR_INFO, MPI_ERR_NO_MEM, MPI_ERR_OTHER.
    MPI_Win_allocate PMPI_Win_allocate (
        size: MPI_Aint, disp_unit: c_int, info: MPI_Info, comm: MPI_Comm, baseptr: *mut c_void,
        win: *mut MPI_Win,
    ) {
        let place = (ptr::null_mut(), size, disp_unit.to_isize());
        // SAFETY: the arguments are the caller's.
        unsafe { make(Flavor::Allocate, place, (info, comm), baseptr, win) }
    }

    /// Creates a window with memory of its own (MPI-4.1 §12.2.2), with a large displacement unit.
    /// Collective: either all ranks create it, or none. The memory is a segment that all ranks of a
    /// node map, so they access it by load and store; other nodes access it over the RDMA device;
    /// without one the window is delegated. Errors, by the handler of `comm`: MPI_ERR_COMM,
    /// MPI_ERR_SIZE, MPI_ERR_DISP, MPI_ERR_ARG, MPI_ERR_INFO, MPI_ERR_NO_MEM, MPI_ERR_OTHER.
    MPI_Win_allocate_c PMPI_Win_allocate_c (
        size: MPI_Aint, disp_unit: MPI_Aint, info: MPI_Info, comm: MPI_Comm,
        baseptr: *mut c_void, win: *mut MPI_Win,
    ) {
        let place = (ptr::null_mut(), size, disp_unit);
        // SAFETY: the arguments are the caller's.
        unsafe { make(Flavor::Allocate, place, (info, comm), baseptr, win) }
    }

    /// Creates a window with memory of its own (MPI-4.1 §12.2.3). Collective: either all ranks
    /// create it, or none. The memory is one segment that all ranks map, so they access it by load
    /// and store. If ranks cannot share memory, the host MPI gets the call and reports the error.
    /// Errors, by the handler of `comm`: MPI_ERR_COMM, MPI_ERR_SIZE, MPI_ERR_DISP, MPI_ERR_ARG,
    /// MPI_ERR_INFO, MPI_ERR_NO_MEM, MPI_ERR_OTHER.
    MPI_Win_allocate_shared PMPI_Win_allocate_shared (
        size: MPI_Aint, disp_unit: c_int, info: MPI_Info, comm: MPI_Comm, baseptr: *mut c_void,
        win: *mut MPI_Win,
    ) {
        let place = (ptr::null_mut(), size, disp_unit.to_isize());
        // SAFETY: the arguments are the caller's.
        unsafe { make(Flavor::Shared, place, (info, comm), baseptr, win) }
    }

    /// Creates a window with memory of its own (MPI-4.1 §12.2.3), with a large displacement unit.
    /// Collective: either all ranks create it, or none. The memory is one segment that all ranks
    /// map, so they access it by load and store. If ranks cannot share memory, the host MPI gets
    /// the call and reports the error. Errors, by the handler of `comm`: MPI_ERR_COMM,
    /// MPI_ERR_SIZE, MPI_ERR_DISP, MPI_ERR_ARG, MPI_ERR_INFO, MPI_ERR_NO_MEM, MPI_ERR_OTHER.
    MPI_Win_allocate_shared_c PMPI_Win_allocate_shared_c (
        size: MPI_Aint, disp_unit: MPI_Aint, info: MPI_Info, comm: MPI_Comm,
        baseptr: *mut c_void, win: *mut MPI_Win,
    ) {
        let place = (ptr::null_mut(), size, disp_unit);
        // SAFETY: the arguments are the caller's.
        unsafe { make(Flavor::Shared, place, (info, comm), baseptr, win) }
    }

    /// Returns size, displacement unit and address in this process of a rank's memory (MPI-4.1
    /// §12.2.3); a null address and size 0 if this process cannot access it by load and store.
    /// MPI_PROC_NULL stands for the first rank that exposes memory. Reads that rank's descriptor
    /// and moves no data. Errors: MPI_ERR_WIN, MPI_ERR_RANK, MPI_ERR_RMA_FLAVOR for a dynamic
    /// window, MPI_ERR_ARG for a null pointer.
    MPI_Win_shared_query PMPI_Win_shared_query (
        win: MPI_Win, rank: c_int, size: *mut MPI_Aint, disp_unit: *mut c_int,
        baseptr: *mut c_void,
    ) {
        serve!(host, on_window, "MPI_Win_shared_query", win, |_, node| {
            check_output(size)?;
            check_output(disp_unit)?;
            let store = |bytes: isize, unit: isize| {
                // SAFETY: the caller's pointers.
                unsafe { size.write(bytes) };
                // SAFETY: the caller's pointer.
                unsafe { disp_unit.write(create::int_or_undefined(host, unit)) };
            };
            // SAFETY: the caller's pointers.
            unsafe { query(host, node, rank, baseptr, store) }
        }, win_shared_query |native| (native, rank, size, disp_unit, baseptr))
    }

    /// Returns size, displacement unit and address in this process of a rank's memory (MPI-4.1
    /// §12.2.3), with a large displacement unit; a null address and size 0 if this process cannot
    /// access it by load and store. MPI_PROC_NULL stands for the first rank that exposes memory.
    /// Reads that rank's descriptor and moves no data. Errors: MPI_ERR_WIN, MPI_ERR_RANK,
    /// MPI_ERR_RMA_FLAVOR for a dynamic window, MPI_ERR_ARG for a null pointer.
    MPI_Win_shared_query_c PMPI_Win_shared_query_c (
        win: MPI_Win, rank: c_int, size: *mut MPI_Aint, disp_unit: *mut MPI_Aint,
        baseptr: *mut c_void,
    ) {
        let host = Host::get();
        on_window("MPI_Win_shared_query_c", host, win, |_, node| {
            check_output(size)?;
            check_output(disp_unit)?;
            let store = |bytes: isize, unit: isize| {
                // SAFETY: the caller's pointers.
                unsafe { size.write(bytes) };
                // SAFETY: the caller's pointer.
                unsafe { disp_unit.write(unit) };
            };
            // SAFETY: the caller's pointers.
            unsafe { query(host, node, rank, baseptr, store) }
        }, |native| {
            if let Some(call) = host.call.win_shared_query_c {
                // SAFETY: the caller's arguments, passed on unchanged.
                return check(unsafe { call(native, rank, size, disp_unit, baseptr) });
            }
            let mut unit = 0;
            // SAFETY: the caller's arguments, with an int for the displacement unit.
            let code = unsafe {
                (host.call.win_shared_query)(native, rank, size, &mut unit, baseptr)
            };
            // SAFETY: the caller's pointer.
            unsafe { disp_unit.write(unit.to_isize()) };
            check(code)
        })
    }

    /// Frees a window (MPI-4.1 §12.2.5) and stores MPI_WIN_NULL. The attributes are deleted first,
    /// while the window can still be used. Then all ranks synchronise in a fence on the window's
    /// transport, and the memory of the window is released. Errors: MPI_ERR_WIN, MPI_ERR_RMA_SYNC
    /// if an epoch is open, MPI_ERR_ARG for a null pointer, and the code of a delete callback that
    /// fails, in which case the window stays.
    MPI_Win_free PMPI_Win_free (win: *mut MPI_Win) {
        let host = Host::get();
        if let Err(error) = check_output(win) {
            return raise_alone("MPI_Win_free", host, error);
        }
        // SAFETY: the caller's pointer to a handle.
        let handle = unsafe { host.fetch(win) };
        let free = || on_any_window("MPI_Win_free", host, handle, |window| {
            window.epochs.may_free()?;
            window.may_end()?;
            keyvals::delete_all(host, window)?;
            window.end_counters(host)?;
            let handler = window.errhandler.load(Ordering::Relaxed);
            create::free(host, window)?;
            errhandler::forget(host, handler);
            Ok(())
        }, |mut native| {
            // SAFETY: a window of the host MPI.
            check(unsafe { (host.call.win_free)(&mut native) })
        });
        let code = match registry::find(host.handle(handle)) {
            Found::Window(window) if let Some(duplicate) = window.as_duplicate() => {
                duplicates::free(host, window, duplicate)
            }
            _ => free(),
        };
        if code == 0 {
            // SAFETY: the caller's pointer to a handle.
            unsafe { host.store(win, host.constants.win_null) };
        }
        code
    }

    /// Attaches memory of this rank to a dynamic window (MPI-4.1 §12.2.4). Local: changes the table
    /// of regions that other ranks read, under its group lock, and registers the memory with the
    /// RDMA device if the window has ranks of other nodes. Errors: MPI_ERR_WIN, MPI_ERR_RMA_FLAVOR
    /// for a window that is not dynamic, MPI_ERR_SIZE, MPI_ERR_BUFFER for a null pointer,
    /// MPI_ERR_RMA_ATTACH for memory that is already attached.
    MPI_Win_attach PMPI_Win_attach (win: MPI_Win, base: *mut c_void, size: MPI_Aint) {
        serve!(host, on_window, "MPI_Win_attach", win, |_, node| {
            node.attach(base.expose_provenance() as u64, size as i64)
        }, win_attach |native| (native, base, size))
    }

    /// Detaches the region at `base` from a dynamic window (MPI-4.1 §12.2.4). Local: waits for
    /// accesses to this rank's regions in progress, but not for epochs of their origins; no later
    /// access reaches the region. Errors: MPI_ERR_WIN, MPI_ERR_RMA_FLAVOR for a window that is not
    /// dynamic, MPI_ERR_RMA_ATTACH if no region begins at `base`.
    MPI_Win_detach PMPI_Win_detach (win: MPI_Win, base: *const c_void) {
        serve!(host, on_window, "MPI_Win_detach", win, |_, node| {
            node.detach(base.addr().to_u64())
        }, win_detach |native| (native, base))
    }
}
