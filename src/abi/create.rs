//! Window creation and the end of windows (MPI-4.1 §12.2).

use super::answer::{on_any_window, on_window, place_for, raise_alone, raise_on_comm};
use super::{MPI_Aint, MPI_Comm, MPI_Info, MPI_Win, attributes, errhandler};
use crate::error::Result;
use crate::mpi::Host;
use crate::sync::Ordering;
use crate::window::create::{self, Failure, Made, Request};
use crate::window::{Flavor, LocalWindow};
use core::ffi::{c_int, c_void};

/// Makes a window and stores its handle and, for allocated memory, its address.
///
/// # Safety
/// `win` points to a window handle and `memory` to a pointer, or they are null.
unsafe fn make(request: Request, memory: *mut c_void, win: *mut MPI_Win) -> c_int {
    let host = Host::get();
    let call = request.flavor.call();
    let request =
        Request { info: host.handle(request.info), comm: host.handle(request.comm), ..request };
    let allocates = matches!(request.flavor, Flavor::Allocate | Flavor::Shared);
    let place = match allocates && request.size > 0 {
        true => place_for(win).and(place_for(memory)),
        false => place_for(win),
    };
    let (handle, base) = match create::make(host, request, place) {
        Ok(Made::Window(window)) => (window.handle as usize, window.facts.base),
        Ok(Made::Native(native, base)) => (native, base),
        Err(Failure::Ours(error)) => {
            if !win.is_null() {
                // Open MPI's Fortran turns the handle into an integer, whatever the call returns.
                // SAFETY: the caller vouches for `win`.
                unsafe { host.store(win, host.constants.win_null) };
            }
            return raise_on_comm(call, host, request.comm, error);
        }
        Err(Failure::Host(code)) => return code,
    };
    if !memory.is_null() {
        // SAFETY: the caller vouches for `memory`.
        unsafe { memory.cast::<usize>().write_unaligned(base) };
    }
    // SAFETY: the caller vouches for `win`.
    unsafe { host.store(win, handle) };
    0
}

/// Stores what MPI_Win_shared_query answers.
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
    place_for(baseptr)?;
    let rank = match rank == host.constants.proc_null {
        true => node.first_with_memory()?,
        false => Some(node.target(rank)?),
    };
    // Where nobody exposes anything, rank 0 exposes as much as the others.
    let (base, bytes, unit) = node.part(rank.unwrap_or(0))?;
    store(bytes as isize, unit as isize);
    // SAFETY: the caller vouches for `baseptr`.
    unsafe { baseptr.cast::<*mut u8>().write_unaligned(base) };
    Ok(())
}

card! {
    /// MPI-4.1 §12.2.1.
    MPI_Win_create PMPI_Win_create (
        base: *mut c_void, size: MPI_Aint, disp_unit: c_int, info: MPI_Info, comm: MPI_Comm,
        win: *mut MPI_Win,
    ) {
        let (flavor, disp_unit) = (Flavor::Create, disp_unit as isize);
        let request = Request { flavor, base, size, disp_unit, info, comm };
        // SAFETY: the arguments are the caller's.
        unsafe { make(request, core::ptr::null_mut(), win) }
    }

    /// MPI-4.1 §12.2.1, with a large displacement unit.
    MPI_Win_create_c PMPI_Win_create_c (
        base: *mut c_void, size: MPI_Aint, disp_unit: MPI_Aint, info: MPI_Info, comm: MPI_Comm,
        win: *mut MPI_Win,
    ) {
        let request = Request { flavor: Flavor::Create, base, size, disp_unit, info, comm };
        // SAFETY: the arguments are the caller's.
        unsafe { make(request, core::ptr::null_mut(), win) }
    }

    /// MPI-4.1 §12.2.4.
    MPI_Win_create_dynamic PMPI_Win_create_dynamic (
        info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win,
    ) {
        let base = core::ptr::null_mut();
        let request =
            Request { flavor: Flavor::Dynamic, base, size: 0, disp_unit: 1, info, comm };
        // SAFETY: the arguments are the caller's.
        unsafe { make(request, core::ptr::null_mut(), win) }
    }

    /// MPI-4.1 §12.2.2.
    MPI_Win_allocate PMPI_Win_allocate (
        size: MPI_Aint, disp_unit: c_int, info: MPI_Info, comm: MPI_Comm, baseptr: *mut c_void,
        win: *mut MPI_Win,
    ) {
        let (flavor, base) = (Flavor::Allocate, core::ptr::null_mut());
        let disp_unit = disp_unit as isize;
        let request = Request { flavor, base, size, disp_unit, info, comm };
        // SAFETY: the arguments are the caller's.
        unsafe { make(request, baseptr, win) }
    }

    /// MPI-4.1 §12.2.2, with a large displacement unit.
    MPI_Win_allocate_c PMPI_Win_allocate_c (
        size: MPI_Aint, disp_unit: MPI_Aint, info: MPI_Info, comm: MPI_Comm,
        baseptr: *mut c_void, win: *mut MPI_Win,
    ) {
        let (flavor, base) = (Flavor::Allocate, core::ptr::null_mut());
        let request = Request { flavor, base, size, disp_unit, info, comm };
        // SAFETY: the arguments are the caller's.
        unsafe { make(request, baseptr, win) }
    }

    /// MPI-4.1 §12.2.3.
    MPI_Win_allocate_shared PMPI_Win_allocate_shared (
        size: MPI_Aint, disp_unit: c_int, info: MPI_Info, comm: MPI_Comm, baseptr: *mut c_void,
        win: *mut MPI_Win,
    ) {
        let (flavor, base) = (Flavor::Shared, core::ptr::null_mut());
        let disp_unit = disp_unit as isize;
        let request = Request { flavor, base, size, disp_unit, info, comm };
        // SAFETY: the arguments are the caller's.
        unsafe { make(request, baseptr, win) }
    }

    /// MPI-4.1 §12.2.3, with a large displacement unit.
    MPI_Win_allocate_shared_c PMPI_Win_allocate_shared_c (
        size: MPI_Aint, disp_unit: MPI_Aint, info: MPI_Info, comm: MPI_Comm,
        baseptr: *mut c_void, win: *mut MPI_Win,
    ) {
        let (flavor, base) = (Flavor::Shared, core::ptr::null_mut());
        let request = Request { flavor, base, size, disp_unit, info, comm };
        // SAFETY: the arguments are the caller's.
        unsafe { make(request, baseptr, win) }
    }

    /// MPI-4.1 §12.2.3.
    MPI_Win_shared_query PMPI_Win_shared_query (
        win: MPI_Win, rank: c_int, size: *mut MPI_Aint, disp_unit: *mut c_int,
        baseptr: *mut c_void,
    ) {
        let host = Host::get();
        on_window("MPI_Win_shared_query", host, win, |_, node| {
            place_for(size)?;
            place_for(disp_unit)?;
            let store = |bytes: isize, unit: isize| {
                // SAFETY: the caller's pointers.
                unsafe { size.write(bytes) };
                // SAFETY: likewise.
                unsafe { disp_unit.write(create::int_or_undefined(host, unit)) };
            };
            // SAFETY: the caller's pointers.
            unsafe { query(host, node, rank, baseptr, store) }
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_shared_query)(native, rank, size, disp_unit, baseptr) }
        })
    }

    /// MPI-4.1 §12.2.3, with a large displacement unit.
    MPI_Win_shared_query_c PMPI_Win_shared_query_c (
        win: MPI_Win, rank: c_int, size: *mut MPI_Aint, disp_unit: *mut MPI_Aint,
        baseptr: *mut c_void,
    ) {
        let host = Host::get();
        on_window("MPI_Win_shared_query_c", host, win, |_, node| {
            place_for(size)?;
            place_for(disp_unit)?;
            let store = |bytes: isize, unit: isize| {
                // SAFETY: the caller's pointers.
                unsafe { size.write(bytes) };
                // SAFETY: likewise.
                unsafe { disp_unit.write(unit) };
            };
            // SAFETY: the caller's pointers.
            unsafe { query(host, node, rank, baseptr, store) }
        }, |native| {
            if let Some(call) = host.call.win_shared_query_c {
                // SAFETY: the caller's arguments, as for the MPI underneath alone.
                return unsafe { call(native, rank, size, disp_unit, baseptr) };
            }
            let mut unit = 0;
            // SAFETY: likewise, with an int for the displacement unit.
            let code = unsafe {
                (host.call.win_shared_query)(native, rank, size, &mut unit, baseptr)
            };
            // SAFETY: the caller's pointer.
            unsafe { disp_unit.write(unit as isize) };
            code
        })
    }

    /// MPI-4.1 §12.2.5. Sets the handle to MPI_WIN_NULL. The attributes go first, while the window
    /// can still be used.
    MPI_Win_free PMPI_Win_free (win: *mut MPI_Win) {
        let host = Host::get();
        if let Err(error) = place_for(win) {
            return raise_alone("MPI_Win_free", host, error);
        }
        // SAFETY: the caller's pointer to a handle.
        let handle = unsafe { host.fetch(win) };
        let code = on_any_window("MPI_Win_free", host, handle, |window| {
            window.epochs.may_free()?;
            attributes::delete_all(host, window)?;
            let handler = window.errhandler.load(Ordering::Relaxed);
            create::free(host, window)?;
            errhandler::forget(host, handler);
            Ok(())
        }, |mut native| {
            // SAFETY: a window of the MPI underneath.
            unsafe { (host.call.win_free)(&mut native) }
        });
        if code == 0 {
            // SAFETY: the caller's pointer to a handle.
            unsafe { host.store(win, host.constants.win_null) };
        }
        code
    }

    /// MPI-4.1 §12.2.4.
    MPI_Win_attach PMPI_Win_attach (win: MPI_Win, base: *mut c_void, size: MPI_Aint) {
        let host = Host::get();
        on_window("MPI_Win_attach", host, win, |_, node| {
            node.attach(base.expose_provenance() as u64, size as i64)
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_attach)(native, base, size) }
        })
    }

    /// MPI-4.1 §12.2.4.
    MPI_Win_detach PMPI_Win_detach (win: MPI_Win, base: *const c_void) {
        let host = Host::get();
        on_window("MPI_Win_detach", host, win, |_, node| {
            node.detach(base.addr() as u64)
        }, |native| {
            // SAFETY: the caller's arguments, as for the MPI underneath alone.
            unsafe { (host.call.win_detach)(native, base) }
        })
    }
}
