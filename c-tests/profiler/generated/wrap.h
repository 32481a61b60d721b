// Every function of MPI that libfompi exports. Written by scripts/dev/headers.
WRAP(int, Win_set_name,
    (MPI_Win win, const char *name),
    (win, name))
WRAP(int, Win_get_name,
    (MPI_Win win, char *name, int *length),
    (win, name, length))
WRAP(int, Win_get_group,
    (MPI_Win win, MPI_Group *group),
    (win, group))
WRAP(int, Win_set_info,
    (MPI_Win win, MPI_Info info),
    (win, info))
WRAP(int, Win_get_info,
    (MPI_Win win, MPI_Info *info),
    (win, info))
WRAP(int, Win_fence,
    (int assert, MPI_Win win),
    (assert, win))
WRAP(int, Win_post,
    (MPI_Group group, int assert, MPI_Win win),
    (group, assert, win))
WRAP(int, Win_start,
    (MPI_Group group, int assert, MPI_Win win),
    (group, assert, win))
WRAP(int, Win_complete,
    (MPI_Win win),
    (win))
WRAP(int, Win_wait,
    (MPI_Win win),
    (win))
WRAP(int, Win_test,
    (MPI_Win win, int *flag),
    (win, flag))
WRAP(int, Win_lock,
    (int lock_type, int rank, int assert, MPI_Win win),
    (lock_type, rank, assert, win))
WRAP(int, Win_unlock,
    (int rank, MPI_Win win),
    (rank, win))
WRAP(int, Win_lock_all,
    (int assert, MPI_Win win),
    (assert, win))
WRAP(int, Win_unlock_all,
    (MPI_Win win),
    (win))
WRAP(int, Win_flush,
    (int rank, MPI_Win win),
    (rank, win))
WRAP(int, Win_flush_local,
    (int rank, MPI_Win win),
    (rank, win))
WRAP(int, Win_flush_all,
    (MPI_Win win),
    (win))
WRAP(int, Win_flush_local_all,
    (MPI_Win win),
    (win))
WRAP(int, Win_sync,
    (MPI_Win win),
    (win))
WRAP(int, Win_create_errhandler,
    (MPI_Win_errhandler_function *function, MPI_Errhandler *errhandler),
    (function, errhandler))
WRAP(int, Win_set_errhandler,
    (MPI_Win win, MPI_Errhandler errhandler),
    (win, errhandler))
WRAP(int, Win_get_errhandler,
    (MPI_Win win, MPI_Errhandler *errhandler),
    (win, errhandler))
WRAP(int, Win_call_errhandler,
    (MPI_Win win, int error),
    (win, error))
WRAP(int, Errhandler_free,
    (MPI_Errhandler *errhandler),
    (errhandler))
WRAP(int, Win_c2f,
    (MPI_Win win),
    (win))
WRAP(MPI_Win, Win_f2c,
    (int win),
    (win))
WRAP(int, Win_toint,
    (MPI_Win win),
    (win))
WRAP(MPI_Win, Win_fromint,
    (int win),
    (win))
WRAP(MPI_Aint, Aint_add,
    (MPI_Aint base, MPI_Aint disp),
    (base, disp))
WRAP(MPI_Aint, Aint_diff,
    (MPI_Aint one, MPI_Aint other),
    (one, other))
WRAP(int, Win_get_attr,
    (MPI_Win win, int keyval, void *value, int *flag),
    (win, keyval, value, flag))
WRAP(int, Win_set_attr,
    (MPI_Win win, int keyval, void *value),
    (win, keyval, value))
WRAP(int, Win_delete_attr,
    (MPI_Win win, int keyval),
    (win, keyval))
WRAP(int, Win_create_keyval,
    (MPI_Win_copy_attr_function *copy, MPI_Win_delete_attr_function *delete_, int *keyval, void *extra),
    (copy, delete_, keyval, extra))
WRAP(int, Win_free_keyval,
    (int *keyval),
    (keyval))
WRAP(int, Alloc_mem,
    (MPI_Aint size, MPI_Info info, void *baseptr),
    (size, info, baseptr))
WRAP(int, Free_mem,
    (void *base),
    (base))
WRAP(int, Error_string,
    (int errorcode, char *string, int *resultlen),
    (errorcode, string, resultlen))
WRAP(int, Request_get_status,
    (MPI_Request request, int *flag, MPI_Status *status),
    (request, flag, status))
WRAP(int, Put,
    (const void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, win))
WRAP(int, Put_c,
    (const void *origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, win))
WRAP(int, Rput,
    (const void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request *request),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, win, request))
WRAP(int, Rput_c,
    (const void *origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request *request),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, win, request))
WRAP(int, Get,
    (void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, win))
WRAP(int, Get_c,
    (void *origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, win))
WRAP(int, Rget,
    (void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request *request),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, win, request))
WRAP(int, Rget_c,
    (void *origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request *request),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, win, request))
WRAP(int, Accumulate,
    (const void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, op, win))
WRAP(int, Accumulate_c,
    (const void *origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, op, win))
WRAP(int, Raccumulate,
    (const void *origin, int origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, op, win, request))
WRAP(int, Raccumulate_c,
    (const void *origin, MPI_Count origin_count, MPI_Datatype origin_type, int rank, MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request),
    (origin, origin_count, origin_type, rank, disp, target_count, target_type, op, win, request))
WRAP(int, Get_accumulate,
    (const void *origin, int origin_count, MPI_Datatype origin_type, void *result, int result_count, MPI_Datatype result_type, int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win),
    (origin, origin_count, origin_type, result, result_count, result_type, rank, disp, target_count, target_type, op, win))
WRAP(int, Get_accumulate_c,
    (const void *origin, MPI_Count origin_count, MPI_Datatype origin_type, void *result, MPI_Count result_count, MPI_Datatype result_type, int rank, MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win),
    (origin, origin_count, origin_type, result, result_count, result_type, rank, disp, target_count, target_type, op, win))
WRAP(int, Rget_accumulate,
    (const void *origin, int origin_count, MPI_Datatype origin_type, void *result, int result_count, MPI_Datatype result_type, int rank, MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request),
    (origin, origin_count, origin_type, result, result_count, result_type, rank, disp, target_count, target_type, op, win, request))
WRAP(int, Rget_accumulate_c,
    (const void *origin, MPI_Count origin_count, MPI_Datatype origin_type, void *result, MPI_Count result_count, MPI_Datatype result_type, int rank, MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request),
    (origin, origin_count, origin_type, result, result_count, result_type, rank, disp, target_count, target_type, op, win, request))
WRAP(int, Fetch_and_op,
    (const void *origin, void *result, MPI_Datatype datatype, int rank, MPI_Aint disp, MPI_Op op, MPI_Win win),
    (origin, result, datatype, rank, disp, op, win))
WRAP(int, Compare_and_swap,
    (const void *origin, const void *compare, void *result, MPI_Datatype datatype, int rank, MPI_Aint disp, MPI_Win win),
    (origin, compare, result, datatype, rank, disp, win))
WRAP(int, Win_create,
    (void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
    (base, size, disp_unit, info, comm, win))
WRAP(int, Win_create_c,
    (void *base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
    (base, size, disp_unit, info, comm, win))
WRAP(int, Win_create_dynamic,
    (MPI_Info info, MPI_Comm comm, MPI_Win *win),
    (info, comm, win))
WRAP(int, Win_allocate,
    (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win),
    (size, disp_unit, info, comm, baseptr, win))
WRAP(int, Win_allocate_c,
    (MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win),
    (size, disp_unit, info, comm, baseptr, win))
WRAP(int, Win_allocate_shared,
    (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win),
    (size, disp_unit, info, comm, baseptr, win))
WRAP(int, Win_allocate_shared_c,
    (MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win),
    (size, disp_unit, info, comm, baseptr, win))
WRAP(int, Win_shared_query,
    (MPI_Win win, int rank, MPI_Aint *size, int *disp_unit, void *baseptr),
    (win, rank, size, disp_unit, baseptr))
WRAP(int, Win_shared_query_c,
    (MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *baseptr),
    (win, rank, size, disp_unit, baseptr))
WRAP(int, Win_free,
    (MPI_Win *win),
    (win))
WRAP(int, Win_attach,
    (MPI_Win win, void *base, MPI_Aint size),
    (win, base, size))
WRAP(int, Win_detach,
    (MPI_Win win, const void *base),
    (win, base))
