//! The four Fortran entries of Open MPI that read its window object instead of calling C (get_attr,
//! set_attr, create_keyval, create_errhandler), under all names that its bindings and programs use.
//! MPICH's entries of these names call C, so calls are passed on to them.

use super::{MPI_Aint, MPI_Errhandler, MPI_Fint, answer, errhandler_calls, keyvals};
use crate::error::Result;
use crate::mpi::Host;
use crate::mpi::attributes::{Calling, Delete, Language};
use crate::mpi::host::Abi;
use crate::number::Number;
use crate::sys::dl;
use crate::window::Window;
use core::ffi::{CStr, c_int, c_void};

/// Fortran's .TRUE. in memory, in the representation of gfortran, which Open MPI expects.
const TRUE: MPI_Fint = 1;
/// Fortran's .FALSE. in the same representation.
const FALSE: MPI_Fint = 0;

/// Returns the entry of the same name in the bindings of the host MPI.
///
/// # Safety
/// `F` is the type of the entry.
unsafe fn next<F>(name: &CStr) -> Option<F> {
    let address = dl::next_symbol(name);
    debug_assert_eq!(size_of::<F>(), size_of::<usize>());
    // SAFETY: the caller guarantees the type.
    (address != 0).then(|| unsafe { core::mem::transmute_copy(&address) })
}

fn is_open_mpi() -> bool {
    Host::get().abi == Abi::OpenMpi
}

/// Stores the error code; old programs omit the argument.
///
/// # Safety
/// `ierror` is null or points to an INTEGER.
unsafe fn store(ierror: *mut MPI_Fint, code: c_int) {
    if !ierror.is_null() {
        // SAFETY: the caller guarantees the pointer.
        unsafe { ierror.write(code) };
    }
}

/// Carries out a call on a window of libfompi, and stores its code. On another MPI, and for a
/// window of the host MPI, the call is passed on to the entry of the same name.
///
/// # Safety
/// `win` points to an INTEGER; `ierror` is as for [`store`].
unsafe fn on_window(
    call: &'static str,
    win: *mut MPI_Fint,
    ierror: *mut MPI_Fint,
    pass_on: &dyn Fn(),
    ours: impl FnOnce(&'static Host, &'static Window) -> Result<()>,
) {
    let host = Host::get();
    if !is_open_mpi() {
        return pass_on();
    }
    // SAFETY: the caller's pointer.
    let win = unsafe { *win }.cast_unsigned().to_usize();
    let mut passed_on = false;
    let code = answer::on_any_window(
        call,
        host,
        win,
        |window| ours(host, window),
        |_| {
            passed_on = true;
            pass_on();
            Ok(())
        },
    );
    if !passed_on {
        // SAFETY: guaranteed by the caller.
        unsafe { store(ierror, code) };
    }
}

/// MPI_WIN_GET_ATTR: MPI_Win_get_attr with the value as an integer of Fortran (MPI-4.1 §19.3.7), by
/// [`on_window`].
///
/// # Safety
/// The arguments are those of the Fortran binding.
unsafe fn get_attr(
    win: *mut MPI_Fint,
    keyval: *mut MPI_Fint,
    value: *mut MPI_Aint,
    flag: *mut MPI_Fint,
    ierror: *mut MPI_Fint,
    pass_on: &dyn Fn(),
) {
    // SAFETY: the caller's pointers.
    let ours = |host, window| unsafe {
        let found = keyvals::find(host, window, *keyval)?;
        flag.write(if found.is_some() { TRUE } else { FALSE });
        if let Some(found) = found {
            value.write(found.integer());
        }
        Ok(())
    };
    // SAFETY: the caller's pointers.
    unsafe { on_window("MPI_Win_get_attr", win, ierror, pass_on, ours) };
}

/// MPI_WIN_SET_ATTR: MPI_Win_set_attr with the value as an integer of Fortran (MPI-4.1 §19.3.7), by
/// [`on_window`].
///
/// # Safety
/// The arguments are those of the Fortran binding.
unsafe fn set_attr(
    win: *mut MPI_Fint,
    keyval: *mut MPI_Fint,
    value: *mut MPI_Aint,
    ierror: *mut MPI_Fint,
    pass_on: &dyn Fn(),
) {
    // SAFETY: the caller's pointers.
    let ours =
        |host, window| unsafe { keyvals::set(host, window, *keyval, *value, Language::Fortran) };
    // SAFETY: the caller's pointers.
    unsafe { on_window("MPI_Win_set_attr", win, ierror, pass_on, ours) };
}

/// MPI_WIN_CREATE_KEYVAL: MPI_Win_create_keyval with a delete callback that is a subroutine of
/// Fortran. On another MPI, and with FOMPI_DISABLE, the call is passed on to the entry of the same
/// name.
///
/// # Safety
/// The arguments are those of the Fortran binding.
unsafe fn create_keyval(
    _copy: *mut c_void,
    delete: *mut c_void,
    keyval: *mut MPI_Fint,
    extra: *mut MPI_Aint,
    ierror: *mut MPI_Fint,
    pass_on: &dyn Fn(),
) {
    if !is_open_mpi() || crate::config::Config::get().disable {
        return pass_on();
    }
    // SAFETY: the caller's pointer.
    let extra = (unsafe { *extra }).cast_unsigned();
    let delete = Delete { function: delete.addr(), extra, calling: Calling::Fortran };
    // SAFETY: the caller's pointer.
    let code = unsafe { keyvals::create(Host::get(), delete, keyval) };
    // SAFETY: the caller's pointer.
    unsafe { store(ierror, code) };
}

/// MPI_WIN_CREATE_ERRHANDLER: MPI_Win_create_errhandler, whose function gets pointers to two
/// INTEGERs. On another MPI, and with FOMPI_DISABLE, the call is passed on to the entry of the same
/// name.
///
/// # Safety
/// The arguments are those of the Fortran binding.
unsafe fn create_errhandler(
    function: *mut c_void,
    handler: *mut MPI_Fint,
    ierror: *mut MPI_Fint,
    pass_on: &dyn Fn(),
) {
    if !is_open_mpi() || crate::config::Config::get().disable {
        return pass_on();
    }
    let host = Host::get();
    let mut made: MPI_Errhandler = 0;
    // SAFETY: the caller's function, and a local handle to store to.
    let code = unsafe { errhandler_calls::create(host, function, &mut made) };
    match host.call.errhandler_c2f {
        // SAFETY: the caller's pointer, and a handle that was just made.
        Some(to_integer) if code == 0 => unsafe { handler.write(to_integer(made)) },
        _ => {}
    }
    // SAFETY: the caller's pointer.
    unsafe { store(ierror, code) };
}

/// One name of a Fortran entry.
macro_rules! name {
    ($inner:ident ($($argument:ident: $type:ty),*) $name:ident) => {
        /// See the function of the same name in this file.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) {
            pass_through!($name ($($argument: $type),*));
            let pass_on = || {
                type Entry = unsafe extern "C-unwind" fn($($type),*);
                // SAFETY: the entry of the same name in the bindings of the MPI has this type.
                if let Some(entry) = unsafe { next::<Entry>(symbol!($name)) } {
                    // SAFETY: the binding's arguments.
                    unsafe { entry($($argument),*) };
                }
            };
            // SAFETY: the binding's arguments.
            unsafe { $inner($($argument,)* &pass_on) }
        }
    };
}

/// The names of one Fortran entry, in all manglings.
macro_rules! names {
    ($inner:ident $arguments:tt: $($name:ident)*) => {
        $(name! { $inner $arguments $name })*
    };
}

names! {
    get_attr(win: *mut MPI_Fint, keyval: *mut MPI_Fint, value: *mut MPI_Aint,
             flag: *mut MPI_Fint, ierror: *mut MPI_Fint):
    MPI_WIN_GET_ATTR mpi_win_get_attr mpi_win_get_attr_ mpi_win_get_attr__
    PMPI_WIN_GET_ATTR pmpi_win_get_attr pmpi_win_get_attr_ pmpi_win_get_attr__
    ompi_win_get_attr_f MPI_Win_get_attr_f MPI_Win_get_attr_f08
    PMPI_Win_get_attr_f PMPI_Win_get_attr_f08
}
names! {
    set_attr(win: *mut MPI_Fint, keyval: *mut MPI_Fint, value: *mut MPI_Aint,
             ierror: *mut MPI_Fint):
    MPI_WIN_SET_ATTR mpi_win_set_attr mpi_win_set_attr_ mpi_win_set_attr__
    PMPI_WIN_SET_ATTR pmpi_win_set_attr pmpi_win_set_attr_ pmpi_win_set_attr__
    ompi_win_set_attr_f MPI_Win_set_attr_f MPI_Win_set_attr_f08
    PMPI_Win_set_attr_f PMPI_Win_set_attr_f08
}
names! {
    create_keyval(copy: *mut c_void, delete: *mut c_void, keyval: *mut MPI_Fint,
                  extra: *mut MPI_Aint, ierror: *mut MPI_Fint):
    MPI_WIN_CREATE_KEYVAL mpi_win_create_keyval mpi_win_create_keyval_ mpi_win_create_keyval__
    PMPI_WIN_CREATE_KEYVAL pmpi_win_create_keyval pmpi_win_create_keyval_
    pmpi_win_create_keyval__
    ompi_win_create_keyval_f MPI_Win_create_keyval_f MPI_Win_create_keyval_f08
    PMPI_Win_create_keyval_f PMPI_Win_create_keyval_f08
}
names! {
    create_errhandler(function: *mut c_void, handler: *mut MPI_Fint, ierror: *mut MPI_Fint):
    MPI_WIN_CREATE_ERRHANDLER mpi_win_create_errhandler mpi_win_create_errhandler_
    mpi_win_create_errhandler__
    PMPI_WIN_CREATE_ERRHANDLER pmpi_win_create_errhandler pmpi_win_create_errhandler_
    pmpi_win_create_errhandler__
    ompi_win_create_errhandler_f MPI_Win_create_errhandler_f MPI_Win_create_errhandler_f08
    PMPI_Win_create_errhandler_f PMPI_Win_create_errhandler_f08
}
