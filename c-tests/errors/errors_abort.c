// An error on a window whose handler is MPI_ERRORS_ABORT ends the processes of the window; where the
// MPI does not know it, the default does. MPI-4.1 section 9.3.
// ranks: 1 2
// settings: FOMPI_STRICT=1
// aborts: lock

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    window_of(64, 8, &win);
#ifdef MPI_ERRORS_ABORT
    MPI_Errhandler handler;
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_ABORT));
    OK(MPI_Win_get_errhandler(win, &handler));
    CHECK(handler == MPI_ERRORS_ABORT);
    OK(MPI_Errhandler_free(&handler));
#endif
    MPI_Win_unlock(0, win);
    return check_end();
}
