//! Checks of the window object: its attributes, hints, name, group, error handler and keyvals
//! (MPI-4.1 §12.2, §7.7.3, §9.3.2), and the calls that only some flavours have.

use crate::job_rank::call;
use crate::tested_window::{BULK_SLOTS, SLOTS, TestedFlavour, TestedWindow};
use fompi_base::error::Class;
use fompi_base::sync::{AtomicI32, Ordering};
use fompi_host::handle::Handle;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

/// The predefined attributes.
pub fn attributes(window: &TestedWindow) -> Option<&'static str> {
    let (rank, constants) = (window.rank, &window.rank.mpi.constants);
    let is_dynamic = window.flavour == TestedFlavour::Dynamic;
    let base = attribute(window, constants.win_base);
    let expected = if is_dynamic { ptr::null() } else { window.memory.cast_const() };
    rank.expect("win_get_attr", Some(expected.addr()), base.map(|at| at.addr()));
    // SAFETY: the attributes below are addresses of numbers (MPI-4.1 §12.2.6), MPI_WIN_SIZE of an
    // MPI_Aint, the others of an int.
    let integer = |keyval| attribute(window, keyval).map(|at| unsafe { *at.cast::<c_int>() });
    // SAFETY: as above.
    let size = attribute(window, constants.win_size).map(|at| unsafe { *at.cast::<isize>() });
    let bytes = if is_dynamic { 0 } else { 8 * (SLOTS + BULK_SLOTS).cast_signed() };
    rank.expect("win_get_attr", Some(bytes), size);
    let unit = if is_dynamic { 1 } else { 8 };
    rank.expect("win_get_attr", Some(unit), integer(constants.win_disp_unit));
    let flavour = match window.flavour {
        TestedFlavour::Create | TestedFlavour::CreateAllocMem => constants.flavor_create,
        TestedFlavour::Allocate => constants.flavor_allocate,
        TestedFlavour::Shared => constants.flavor_shared,
        TestedFlavour::Dynamic => constants.flavor_dynamic,
    };
    rank.expect("win_get_attr", Some(flavour), integer(constants.win_create_flavor));
    rank.expect("win_get_attr", Some(constants.unified), integer(constants.win_model));
    None
}

fn attribute(window: &TestedWindow, keyval: c_int) -> Option<*const c_void> {
    let (mut value, mut flag): (*const c_void, _) = (ptr::null(), 0);
    call!(window.rank, win_get_attr(window.win, keyval, (&raw mut value).cast(), &mut flag));
    (flag != 0).then_some(value)
}

/// Name, hints and group.
pub fn descriptions(window: &TestedWindow) -> Option<&'static str> {
    let (rank, constants) = (window.rank, &window.rank.mpi.constants);
    let (mut name, mut length) = ([0_u8; 256], 0);
    call!(rank, win_set_name(window.win, c"selftest".as_ptr()));
    call!(rank, win_get_name(window.win, name.as_mut_ptr().cast(), &mut length));
    rank.expect("win_get_name", Ok(c"selftest"), CStr::from_bytes_until_nul(&name));
    let mut info: Handle = 0;
    call!(rank, info_create(&mut info));
    let (key, value) = (c"accumulate_ordering", c"rar,raw,war,waw");
    call!(rank, info_set(info, key.as_ptr(), value.as_ptr()));
    call!(rank, win_set_info(window.win, info));
    if !window.is_of_host_mpi() {
        rank.expect("win_get_info", Some("rar,raw,war,waw".into()), window.hint(key));
    }
    if let Some(free) = rank.mpi.call.info_free {
        // SAFETY: the info object of above.
        unsafe { free(&mut info) };
    }
    let (mut group, mut size) = (constants.group_null, 0);
    call!(rank, win_get_group(window.win, &mut group));
    call!(rank, group_size(group, &mut size));
    rank.expect("win_get_group", window.ranks.ranks, size);
    call!(rank, group_free(&mut group));
    None
}

/// The code with which the error handler was called last.
static HANDLED: AtomicI32 = AtomicI32::new(0);

/// # Safety
/// `code` points to an error code.
unsafe extern "C" fn handle_error(_: *mut c_void, code: *mut c_int) {
    // SAFETY: guaranteed by the caller. Relaxed: one thread.
    HANDLED.store(unsafe { *code }, Ordering::Relaxed);
}

/// An error handler of the program.
pub fn error_handler(window: &TestedWindow) -> Option<&'static str> {
    let (rank, constants) = (window.rank, &window.rank.mpi.constants);
    let (mut own, mut present) = (0, 0);
    let function: unsafe extern "C" fn(*mut c_void, *mut c_int) = handle_error;
    call!(rank, win_create_errhandler(function as *mut c_void, &mut own));
    call!(rank, win_set_errhandler(window.win, own));
    let class = constants.class(Class::Rank);
    // Relaxed: one thread.
    HANDLED.store(0, Ordering::Relaxed);
    call!(rank, win_call_errhandler(window.win, class));
    rank.expect("win_call_errhandler", class, HANDLED.load(Ordering::Relaxed));
    call!(rank, win_set_errhandler(window.win, constants.errors_return));
    call!(rank, win_get_errhandler(window.win, &mut present));
    rank.expect("win_get_errhandler", constants.errors_return, present);
    call!(rank, errhandler_free(&mut own));
    None
}

/// The number of attributes that were deleted.
static DELETED: AtomicI32 = AtomicI32::new(0);

/// # Safety
/// None.
unsafe extern "C" fn delete(_: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    DELETED.fetch_add(1, Ordering::Relaxed); // one thread
    0
}

/// An attribute of the program.
pub fn keyvals(window: &TestedWindow) -> Option<&'static str> {
    let (rank, win) = (window.rank, window.win);
    let copy: fompi_host::functions::CopyFn = fompi_host::functions::do_not_copy;
    let delete: fompi_host::functions::DeleteFn = delete;
    let (mut keyval, mut value, nothing) = (0, 17, ptr::null_mut());
    let value = (&raw mut value).cast::<c_void>();
    let before = DELETED.load(Ordering::Relaxed); // one thread
    let (copy, delete) = (copy as *mut c_void, delete as *mut c_void);
    call!(rank, win_create_keyval(copy, delete, &mut keyval, nothing));
    call!(rank, win_set_attr(win, keyval, value));
    rank.expect("win_get_attr", Some(value.cast_const()), attribute(window, keyval));
    call!(rank, win_delete_attr(win, keyval));
    rank.expect("win_delete_attr", None, attribute(window, keyval));
    rank.expect("win_delete_attr", before + 1, DELETED.load(Ordering::Relaxed));
    call!(rank, win_free_keyval(&mut keyval));
    rank.expect("win_free_keyval", rank.mpi.constants.keyval_invalid, keyval);
    None
}

/// Load and store of the memory of another rank, by the address of MPI_Win_shared_query.
pub fn shared_memory(window: &TestedWindow) -> Option<&'static str> {
    if window.flavour != TestedFlavour::Shared {
        return Some("for MPI_Win_allocate_shared");
    }
    let (rank, win) = (window.rank, window.win);
    let (mut size, mut unit, mut memory): (_, _, *mut i64) = (0, 0, ptr::null_mut());
    let base = (&raw mut memory).cast();
    window.reset();
    call!(rank, win_lock_all(0, win));
    let found = call!(rank, win_shared_query(win, window.next(), &mut size, &mut unit, base));
    rank.expect("win_shared_query", 8 * (SLOTS + BULK_SLOTS).cast_signed(), size);
    rank.expect("win_shared_query", 8, unit);
    if found && !memory.is_null() {
        // SAFETY: the memory of the next rank, which its window exposes.
        unsafe { memory.write_volatile(500 + i64::from(window.ranks.me)) };
    }
    call!(rank, win_sync(win));
    window.barrier();
    call!(rank, win_sync(win));
    rank.expect("win_shared_query", 500 + i64::from(window.previous()), window.own(0));
    window.unlock_all();
    None
}

/// Memory that comes and goes while a window of MPI_Win_create_dynamic exists.
pub fn attach_detach(window: &TestedWindow) -> Option<&'static str> {
    if window.flavour != TestedFlavour::Dynamic {
        return Some("for MPI_Win_create_dynamic");
    }
    let (rank, win, word) = (window.rank, window.win, window.rank.word);
    for turn in 0..3 {
        let mut more = vec![0_i64; 512];
        let (memory, mut all) = (more.as_mut_ptr(), vec![0_isize; 64]);
        call!(rank, win_attach(win, memory.cast(), 4096));
        let at = memory.addr().cast_signed();
        all.resize(usize::try_from(window.ranks.ranks).unwrap_or(0), 0);
        let to = all.as_mut_ptr().cast();
        call!(rank, allgather((&raw const at).cast(), 1, word, to, 1, word, window.ranks.comm));
        let next = window.next();
        let there = all[usize::try_from(next).unwrap_or(0)] + 8 * 100;
        let value = 900 + turn + i64::from(window.ranks.me);
        window.lock_exclusive(next);
        call!(rank, put((&raw const value).cast(), 1, word, next, there, 1, word, win));
        window.unlock(next);
        window.barrier();
        call!(rank, win_lock(rank.mpi.constants.lock_shared, window.ranks.me, 0, win));
        // SAFETY: inside of the vector.
        let got = unsafe { memory.add(100).read_volatile() };
        window.unlock(window.ranks.me);
        rank.expect("win_attach", 900 + turn + i64::from(window.previous()), got);
        window.barrier();
        call!(rank, win_detach(win, memory.cast()));
    }
    None
}
