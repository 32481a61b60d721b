//! The functions of the host MPI that the library calls, with their types. Handles are [`Handle`]s,
//! a status is a buffer that is large enough in every ABI. To call one more, add a row: to
//! `required` if every MPI has it.

use super::handle::{Handle, Status};
use core::ffi::{c_char, c_int, c_void};

/// The signature of a delete callback of a communicator or datatype attribute.
pub type DeleteFn = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;
/// The signature of a copy callback.
pub type CopyFn =
    unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;

/// The signatures of the callbacks of a generalized request: to fill its status, to free its state,
/// and to cancel it.
pub type QueryFn = unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int;
/// See [`QueryFn`].
pub type FreeFn = unsafe extern "C" fn(*mut c_void) -> c_int;
/// See [`QueryFn`].
pub type CancelFn = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
/// The signatures of two more callbacks in MPICH's family: to advance a request, and to wait for
/// many.
pub type PollFn = unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int;
/// See [`PollFn`].
pub type WaitFn = unsafe extern "C" fn(c_int, *mut *mut c_void, f64, *mut Status) -> c_int;
/// The signature of the function that Open MPI calls when it makes progress.
pub type ProgressFn = unsafe extern "C" fn() -> c_int;

/// A copy callback that does not copy an attribute: state that this library keeps with an object
/// belongs to that object.
///
/// # Safety
/// `copied` points to a flag.
pub unsafe extern "C" fn do_not_copy(
    _: Handle,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    copied: *mut c_int,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { *copied = 0 };
    0
}

/// Declares a table of functions of an MPI: each has a field, its symbol, and the types of its
/// arguments. All answer with an error code.
#[macro_export]
macro_rules! host_functions {
    (
        $(#[$about:meta])*
        $functions:ident
        required { $($name:ident = $symbol:literal ($($a:ty),*);)* }
        optional { $($oname:ident = $osymbol:literal ($($oa:ty),*);)* }
    ) => {
        $(#[$about])*
        #[allow(missing_docs)]
        pub struct $functions {
            $(pub $name: unsafe extern "C-unwind" fn($($a),*) -> core::ffi::c_int,)*
            $(pub $oname: Option<unsafe extern "C-unwind" fn($($oa),*) -> core::ffi::c_int>,)*
        }

        impl $functions {
            /// Finds all functions by `find`, which returns the address of a symbol, or 0. Returns
            /// the name of the first that is missing, if one is.
            pub fn load(
                find: impl Fn(&'static core::ffi::CStr) -> usize,
            ) -> Result<$functions, &'static core::ffi::CStr> {
                $(
                    let $name = find($symbol);
                    if $name == 0 {
                        return Err($symbol);
                    }
                )*
                $(let $oname = find($osymbol);)*
                Ok($functions {
                    // SAFETY: a function of that name has that signature in every MPI ABI
                    // (docs/internals/architecture.md); a handle fits a register and is passed
                    // as one.
                    $($name: unsafe { core::mem::transmute_copy(&$name) },)*
                    // SAFETY: as for the functions above; an Option of a function pointer is null
                    // for None.
                    $($oname: unsafe { core::mem::transmute_copy(&$oname) },)*
                })
            }
        }
    };
}

host_functions! {
    /// The functions of the host MPI, by their names without the prefix.
    Functions
    required {
        initialized = c"PMPI_Initialized" (*mut c_int);
        finalized = c"PMPI_Finalized" (*mut c_int);
        query_thread = c"PMPI_Query_thread" (*mut c_int);
        abort = c"PMPI_Abort" (Handle, c_int);
        error_string = c"PMPI_Error_string" (c_int, *mut c_char, *mut c_int);
        error_class = c"PMPI_Error_class" (c_int, *mut c_int);
    add_error_class = c"PMPI_Add_error_class" (*mut c_int);
        add_error_code = c"PMPI_Add_error_code" (c_int, *mut c_int);
        add_error_string = c"PMPI_Add_error_string" (c_int, *const c_char);
        comm_create = c"PMPI_Comm_create" (Handle, Handle, *mut Handle);
        comm_split = c"PMPI_Comm_split" (Handle, c_int, c_int, *mut Handle);
        comm_free = c"PMPI_Comm_free" (*mut Handle);
        comm_rank = c"PMPI_Comm_rank" (Handle, *mut c_int);
        comm_size = c"PMPI_Comm_size" (Handle, *mut c_int);
        comm_group = c"PMPI_Comm_group" (Handle, *mut Handle);
        comm_test_inter = c"PMPI_Comm_test_inter" (Handle, *mut c_int);
        comm_get_parent = c"PMPI_Comm_get_parent" (*mut Handle);
        comm_spawn = c"PMPI_Comm_spawn"
            (*const c_char, *mut c_void, c_int, Handle, c_int, Handle, *mut Handle, *mut c_int);
        comm_spawn_multiple = c"PMPI_Comm_spawn_multiple"
            (c_int, *mut c_void, *mut c_void, *const c_int, *const c_void, c_int, Handle,
             *mut Handle, *mut c_int);
        comm_accept = c"PMPI_Comm_accept" (*const c_char, Handle, c_int, Handle, *mut Handle);
        comm_connect = c"PMPI_Comm_connect" (*const c_char, Handle, c_int, Handle, *mut Handle);
        comm_join = c"PMPI_Comm_join" (c_int, *mut Handle);
        comm_create_keyval = c"PMPI_Comm_create_keyval"
            (CopyFn, DeleteFn, *mut c_int, *mut c_void);
        comm_set_attr = c"PMPI_Comm_set_attr" (Handle, c_int, *mut c_void);
        comm_get_attr = c"PMPI_Comm_get_attr" (Handle, c_int, *mut c_void, *mut c_int);
        comm_call_errhandler = c"PMPI_Comm_call_errhandler" (Handle, c_int);
        comm_set_errhandler = c"PMPI_Comm_set_errhandler" (Handle, Handle);
        comm_get_errhandler = c"PMPI_Comm_get_errhandler" (Handle, *mut Handle);
        group_size = c"PMPI_Group_size" (Handle, *mut c_int);
        group_free = c"PMPI_Group_free" (*mut Handle);
        group_translate_ranks = c"PMPI_Group_translate_ranks"
            (Handle, c_int, *const c_int, Handle, *mut c_int);
        bcast = c"PMPI_Bcast" (*mut c_void, c_int, Handle, c_int, Handle);
        allreduce = c"PMPI_Allreduce"
            (*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
        iallreduce = c"PMPI_Iallreduce"
            (*const c_void, *mut c_void, c_int, Handle, Handle, Handle, *mut Handle);
        allgather = c"PMPI_Allgather"
            (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
        isend = c"PMPI_Isend"
            (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
        wait = c"PMPI_Wait" (*mut Handle, *mut Status);
        test = c"PMPI_Test" (*mut Handle, *mut c_int, *mut Status);
        irecv = c"PMPI_Irecv"
            (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
        grequest_start = c"PMPI_Grequest_start"
            (QueryFn, FreeFn, CancelFn, *mut c_void, *mut Handle);
        grequest_complete = c"PMPI_Grequest_complete" (Handle);
        request_get_status = c"PMPI_Request_get_status" (Handle, *mut c_int, *mut Status);
        status_set_elements = c"PMPI_Status_set_elements" (*mut Status, Handle, c_int);
        status_set_cancelled = c"PMPI_Status_set_cancelled" (*mut Status, c_int);
        iprobe = c"PMPI_Iprobe" (c_int, c_int, Handle, *mut c_int, *mut Status);
        type_size_x = c"PMPI_Type_size_x" (Handle, *mut i64);
        type_get_extent_x = c"PMPI_Type_get_extent_x" (Handle, *mut i64, *mut i64);
        type_get_envelope = c"PMPI_Type_get_envelope"
            (Handle, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
        type_get_contents = c"PMPI_Type_get_contents"
            (Handle, c_int, c_int, c_int, *mut c_int, *mut isize, *mut Handle);
        type_create_keyval = c"PMPI_Type_create_keyval"
            (CopyFn, DeleteFn, *mut c_int, *mut c_void);
        type_set_attr = c"PMPI_Type_set_attr" (Handle, c_int, *mut c_void);
        type_get_attr = c"PMPI_Type_get_attr" (Handle, c_int, *mut c_void, *mut c_int);
        type_free = c"PMPI_Type_free" (*mut Handle);
        info_create = c"PMPI_Info_create" (*mut Handle);
        info_set = c"PMPI_Info_set" (Handle, *const c_char, *const c_char);
        info_get = c"PMPI_Info_get"
            (Handle, *const c_char, c_int, *mut c_char, *mut c_int);
        errhandler_free = c"PMPI_Errhandler_free" (*mut Handle);
        alloc_mem = c"PMPI_Alloc_mem" (isize, Handle, *mut c_void);
        free_mem = c"PMPI_Free_mem" (*mut c_void);

        win_create = c"PMPI_Win_create"
            (*mut c_void, isize, c_int, Handle, Handle, *mut Handle);
        win_create_dynamic = c"PMPI_Win_create_dynamic" (Handle, Handle, *mut Handle);
        win_allocate = c"PMPI_Win_allocate"
            (isize, c_int, Handle, Handle, *mut c_void, *mut Handle);
        win_allocate_shared = c"PMPI_Win_allocate_shared"
            (isize, c_int, Handle, Handle, *mut c_void, *mut Handle);
        win_shared_query = c"PMPI_Win_shared_query"
            (Handle, c_int, *mut isize, *mut c_int, *mut c_void);
        win_free = c"PMPI_Win_free" (*mut Handle);
        win_attach = c"PMPI_Win_attach" (Handle, *mut c_void, isize);
        win_detach = c"PMPI_Win_detach" (Handle, *const c_void);
        win_fence = c"PMPI_Win_fence" (c_int, Handle);
        win_post = c"PMPI_Win_post" (Handle, c_int, Handle);
        win_start = c"PMPI_Win_start" (Handle, c_int, Handle);
        win_complete = c"PMPI_Win_complete" (Handle);
        win_wait = c"PMPI_Win_wait" (Handle);
        win_test = c"PMPI_Win_test" (Handle, *mut c_int);
        win_lock = c"PMPI_Win_lock" (c_int, c_int, c_int, Handle);
        win_unlock = c"PMPI_Win_unlock" (c_int, Handle);
        win_lock_all = c"PMPI_Win_lock_all" (c_int, Handle);
        win_unlock_all = c"PMPI_Win_unlock_all" (Handle);
        win_flush = c"PMPI_Win_flush" (c_int, Handle);
        win_flush_local = c"PMPI_Win_flush_local" (c_int, Handle);
        win_flush_all = c"PMPI_Win_flush_all" (Handle);
        win_flush_local_all = c"PMPI_Win_flush_local_all" (Handle);
        win_sync = c"PMPI_Win_sync" (Handle);
        win_get_group = c"PMPI_Win_get_group" (Handle, *mut Handle);
        win_get_attr = c"PMPI_Win_get_attr" (Handle, c_int, *mut c_void, *mut c_int);
        win_set_attr = c"PMPI_Win_set_attr" (Handle, c_int, *mut c_void);
        win_delete_attr = c"PMPI_Win_delete_attr" (Handle, c_int);
        win_create_keyval = c"PMPI_Win_create_keyval"
            (*mut c_void, *mut c_void, *mut c_int, *mut c_void);
        win_free_keyval = c"PMPI_Win_free_keyval" (*mut c_int);
        win_get_info = c"PMPI_Win_get_info" (Handle, *mut Handle);
        win_set_info = c"PMPI_Win_set_info" (Handle, Handle);
        win_get_name = c"PMPI_Win_get_name" (Handle, *mut c_char, *mut c_int);
        win_set_name = c"PMPI_Win_set_name" (Handle, *const c_char);
        win_get_errhandler = c"PMPI_Win_get_errhandler" (Handle, *mut Handle);
        win_set_errhandler = c"PMPI_Win_set_errhandler" (Handle, Handle);
        win_create_errhandler = c"PMPI_Win_create_errhandler" (*mut c_void, *mut Handle);
        win_call_errhandler = c"PMPI_Win_call_errhandler" (Handle, c_int);

        put = c"PMPI_Put"
            (*const c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle);
        get = c"PMPI_Get"
            (*mut c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle);
        accumulate = c"PMPI_Accumulate"
            (*const c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle, Handle);
        get_accumulate = c"PMPI_Get_accumulate"
            (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, isize, c_int,
             Handle, Handle, Handle);
        fetch_and_op = c"PMPI_Fetch_and_op"
            (*const c_void, *mut c_void, Handle, c_int, isize, Handle, Handle);
        compare_and_swap = c"PMPI_Compare_and_swap"
            (*const c_void, *const c_void, *mut c_void, Handle, c_int, isize, Handle);
        rput = c"PMPI_Rput"
            (*const c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle, *mut Handle);
        rget = c"PMPI_Rget"
            (*mut c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle, *mut Handle);
        raccumulate = c"PMPI_Raccumulate"
            (*const c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle, Handle,
             *mut Handle);
        rget_accumulate = c"PMPI_Rget_accumulate"
            (*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, isize, c_int,
             Handle, Handle, Handle, *mut Handle);
    }
    optional {
        type_get_envelope_c = c"PMPI_Type_get_envelope_c"
            (Handle, *mut i64, *mut i64, *mut i64, *mut i64, *mut c_int);
        type_get_contents_c = c"PMPI_Type_get_contents_c"
            (Handle, i64, i64, i64, i64, *mut c_int, *mut isize, *mut i64, *mut Handle);
        win_create_c = c"PMPI_Win_create_c"
            (*mut c_void, isize, isize, Handle, Handle, *mut Handle);
        win_allocate_c = c"PMPI_Win_allocate_c"
            (isize, isize, Handle, Handle, *mut c_void, *mut Handle);
        win_allocate_shared_c = c"PMPI_Win_allocate_shared_c"
            (isize, isize, Handle, Handle, *mut c_void, *mut Handle);
        win_shared_query_c = c"PMPI_Win_shared_query_c"
            (Handle, c_int, *mut isize, *mut isize, *mut c_void);
        put_c = c"PMPI_Put_c"
            (*const c_void, i64, Handle, c_int, isize, i64, Handle, Handle);
        get_c = c"PMPI_Get_c"
            (*mut c_void, i64, Handle, c_int, isize, i64, Handle, Handle);
        accumulate_c = c"PMPI_Accumulate_c"
            (*const c_void, i64, Handle, c_int, isize, i64, Handle, Handle, Handle);
        get_accumulate_c = c"PMPI_Get_accumulate_c"
            (*const c_void, i64, Handle, *mut c_void, i64, Handle, c_int, isize, i64,
             Handle, Handle, Handle);
        rput_c = c"PMPI_Rput_c"
            (*const c_void, i64, Handle, c_int, isize, i64, Handle, Handle, *mut Handle);
        rget_c = c"PMPI_Rget_c"
            (*mut c_void, i64, Handle, c_int, isize, i64, Handle, Handle, *mut Handle);
        raccumulate_c = c"PMPI_Raccumulate_c"
            (*const c_void, i64, Handle, c_int, isize, i64, Handle, Handle, Handle,
             *mut Handle);
        rget_accumulate_c = c"PMPI_Rget_accumulate_c"
            (*const c_void, i64, Handle, *mut c_void, i64, Handle, c_int, isize, i64,
             Handle, Handle, Handle, *mut Handle);
        comm_get_info = c"PMPI_Comm_get_info" (Handle, *mut Handle);
        info_free = c"PMPI_Info_free" (*mut Handle);
        errhandler_c2f = c"PMPI_Errhandler_c2f" (Handle);
        win_get_attr_of_kind = c"MPII_Win_get_attr"
            (Handle, c_int, *mut c_void, *mut c_int, c_int);
        win_set_attr_of_kind = c"MPII_Win_set_attr" (Handle, c_int, *mut c_void, c_int);
        win_create_errhandler_x = c"PMPIX_Win_create_errhandler_x"
            (*mut c_void, *mut c_void, *mut c_void, *mut Handle);
        session_init = c"PMPI_Session_init" (Handle, Handle, *mut Handle);
        get_version = c"PMPI_Get_version" (*mut c_int, *mut c_int);
        grequest_start_with_poll = c"PMPIX_Grequest_start"
            (QueryFn, FreeFn, CancelFn, PollFn, WaitFn, *mut c_void, *mut Handle);
        request_toint = c"PMPI_Request_toint" (Handle);
        progress_register = c"opal_progress_register" (ProgressFn);
    }
}
