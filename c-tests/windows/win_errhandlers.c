// Errors on a window are fatal by default, whatever its communicator does, and MPI_ERRORS_RETURN
// can be set, read back and taken away again. MPI-4.1 sections 9.3 and 12.6.1.
// ranks: 1 2

#include "check.h"

static void handler_is(MPI_Win win, MPI_Errhandler want)
{
    MPI_Errhandler handler;
    OK(MPI_Win_get_errhandler(win, &handler));
    CHECK(handler == want);
    OK(MPI_Errhandler_free(&handler));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    int *base, value = 1;
    check_start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Win_allocate(16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    handler_is(win, MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    handler_is(win, MPI_ERRORS_RETURN);

    OK(MPI_Win_fence(0, win));
    EXPECT(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    OK(MPI_Win_fence(0, win));
    EXPECT(MPI_Win_call_errhandler(win, MPI_ERR_OTHER), MPI_SUCCESS);

    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL));
    handler_is(win, MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_free(&win));
    return check_end();
}
