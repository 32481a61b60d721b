/* Every function that libfompi exports, and its arguments: w a word (handle, pointer, address or
 * count), i an int. What has n is called with as many words as fit. Written down from the
 * standard's bindings; tests/test_loading.py holds the names against src/abi/exported.txt.
 *
 * EACH(X) is X(name, arguments) for each. */

#define BOTH(X, name, arguments) X(name, arguments) X(P##name, arguments)
#define C_NAMES(X) \
    BOTH(X, MPI_Accumulate, "wiwiwiwww") \
    BOTH(X, MPI_Accumulate_c, "wwwiwwwww") \
    BOTH(X, MPI_Aint_add, "ww") \
    BOTH(X, MPI_Aint_diff, "ww") \
    BOTH(X, MPI_Alloc_mem, "www") \
    BOTH(X, MPI_Compare_and_swap, "wwwwiww") \
    BOTH(X, MPI_Errhandler_free, "w") \
    BOTH(X, MPI_Error_string, "iww") \
    BOTH(X, MPI_Fetch_and_op, "wwwiwww") \
    BOTH(X, MPI_Free_mem, "w") \
    BOTH(X, MPI_Get, "wiwiwiww") \
    BOTH(X, MPI_Get_accumulate, "wiwwiwiwiwww") \
    BOTH(X, MPI_Get_accumulate_c, "wwwwwwiwwwww") \
    BOTH(X, MPI_Get_c, "wwwiwwww") \
    BOTH(X, MPI_Put, "wiwiwiww") \
    BOTH(X, MPI_Put_c, "wwwiwwww") \
    BOTH(X, MPI_Raccumulate, "wiwiwiwwww") \
    BOTH(X, MPI_Raccumulate_c, "wwwiwwwwww") \
    BOTH(X, MPI_Request_get_status, "www") \
    BOTH(X, MPI_Rget, "wiwiwiwww") \
    BOTH(X, MPI_Rget_accumulate, "wiwwiwiwiwwww") \
    BOTH(X, MPI_Rget_accumulate_c, "wwwwwwiwwwwww") \
    BOTH(X, MPI_Rget_c, "wwwiwwwww") \
    BOTH(X, MPI_Rput, "wiwiwiwww") \
    BOTH(X, MPI_Rput_c, "wwwiwwwww") \
    BOTH(X, MPI_Win_allocate, "wiwwww") \
    BOTH(X, MPI_Win_allocate_c, "wwwwww") \
    BOTH(X, MPI_Win_allocate_shared, "wiwwww") \
    BOTH(X, MPI_Win_allocate_shared_c, "wwwwww") \
    BOTH(X, MPI_Comm_accept, "wwiww") \
    BOTH(X, MPI_Comm_connect, "wwiww") \
    BOTH(X, MPI_Comm_join, "iw") \
    BOTH(X, MPI_Comm_spawn, "wwiwiwww") \
    BOTH(X, MPI_Comm_spawn_multiple, "iwwwwiwww") \
    BOTH(X, MPI_Win_attach, "www") \
    BOTH(X, MPI_Win_call_errhandler, "wi") \
    BOTH(X, MPI_Win_complete, "w") \
    BOTH(X, MPI_Win_create, "wwiwww") \
    BOTH(X, MPI_Win_create_c, "wwwwww") \
    BOTH(X, MPI_Win_create_dynamic, "www") \
    BOTH(X, MPI_Win_create_errhandler, "ww") \
    BOTH(X, MPI_Win_create_keyval, "wwww") \
    BOTH(X, MPI_Win_delete_attr, "wi") \
    BOTH(X, MPI_Win_detach, "ww") \
    BOTH(X, MPI_Win_fence, "iw") \
    BOTH(X, MPI_Win_flush, "iw") \
    BOTH(X, MPI_Win_flush_all, "w") \
    BOTH(X, MPI_Win_flush_local, "iw") \
    BOTH(X, MPI_Win_flush_local_all, "w") \
    BOTH(X, MPI_Win_free, "w") \
    BOTH(X, MPI_Win_free_keyval, "w") \
    BOTH(X, MPI_Win_get_attr, "wiww") \
    BOTH(X, MPI_Win_get_errhandler, "ww") \
    BOTH(X, MPI_Win_get_group, "ww") \
    BOTH(X, MPI_Win_get_info, "ww") \
    BOTH(X, MPI_Win_get_name, "www") \
    BOTH(X, MPI_Win_lock, "iiiw") \
    BOTH(X, MPI_Win_lock_all, "iw") \
    BOTH(X, MPI_Win_post, "wiw") \
    BOTH(X, MPI_Win_set_attr, "wiw") \
    BOTH(X, MPI_Win_set_errhandler, "ww") \
    BOTH(X, MPI_Win_set_info, "ww") \
    BOTH(X, MPI_Win_set_name, "ww") \
    BOTH(X, MPI_Win_shared_query, "wiwww") \
    BOTH(X, MPI_Win_shared_query_c, "wiwww") \
    BOTH(X, MPI_Win_start, "wiw") \
    BOTH(X, MPI_Win_sync, "w") \
    BOTH(X, MPI_Win_test, "ww") \
    BOTH(X, MPI_Win_unlock, "iw") \
    BOTH(X, MPI_Win_unlock_all, "w") \
    BOTH(X, MPI_Win_wait, "w") \
    BOTH(X, MPI_Win_c2f, "w") \
    BOTH(X, MPI_Win_f2c, "i") \
    BOTH(X, MPI_Win_fromint, "i") \
    BOTH(X, MPI_Win_toint, "w") \
    BOTH(X, MPIX_Win_create_errhandler_x, "wwww") \
    BOTH(X, MPIX_Win_create_notify, "n") \
    BOTH(X, MPIX_Win_free_notify, "n") \
    BOTH(X, MPIX_Win_get_notify, "n") \
    BOTH(X, MPIX_Win_set_notify, "n") \
    BOTH(X, MPIX_Win_get_notify_request, "n") \
    BOTH(X, MPIX_Get_notify, "n") \
    BOTH(X, MPIX_Put_notify, "n") \
    BOTH(X, MPIX_Get_notify_c, "n") \
    BOTH(X, MPIX_Put_notify_c, "n")

/* The names of one Fortran entry: pointers only. */
#define FORTRAN(X, upper, lower, arguments) \
    X(MPI_WIN_##upper, arguments) X(PMPI_WIN_##upper, arguments) \
    X(mpi_win_##lower, arguments) X(pmpi_win_##lower, arguments) \
    X(mpi_win_##lower##_, arguments) X(pmpi_win_##lower##_, arguments) \
    X(mpi_win_##lower##__, arguments) X(pmpi_win_##lower##__, arguments) \
    X(ompi_win_##lower##_f, arguments) \
    X(MPI_Win_##lower##_f, arguments) X(PMPI_Win_##lower##_f, arguments) \
    X(MPI_Win_##lower##_f08, arguments) X(PMPI_Win_##lower##_f08, arguments)
#define FORTRAN_NAMES(X) \
    FORTRAN(X, GET_ATTR, get_attr, "wwwww") \
    FORTRAN(X, SET_ATTR, set_attr, "wwww") \
    FORTRAN(X, CREATE_KEYVAL, create_keyval, "wwwww") \
    FORTRAN(X, CREATE_ERRHANDLER, create_errhandler, "www")

#define INNER_NAMES(X) \
    X(MPII_Win_get_attr, "wiwwi") \
    X(MPII_Win_set_attr, "wiwi") \
    X(MPII_Keyval_set_proxy, "iww") \
    X(MPII_Errhandler_set_cxx, "ww") \
    X(ompi_cxx_errhandler_create_win, "w") \
    X(ompi_cxx_attr_create_keyval_win, "wwwwiw")

#define EACH(X) C_NAMES(X) FORTRAN_NAMES(X) INNER_NAMES(X)
