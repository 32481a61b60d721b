// A call of libfompi that makes no window stores MPI_WIN_NULL, whatever the handle was before: the
// Fortran binding of Open MPI 4 turns the handle into an integer after an error, too, and crashes
// at one that was never set. The MPIs alone leave it as it was. MPI-4.1 section 12.2.
// ranks: 1 2

#include "created.h"

static void is_null(const char *call, int code, MPI_Win win)
{
    if (code == MPI_SUCCESS || (library_is_here() && win != MPI_WIN_NULL))
        check_failed(__FILE__, __LINE__, "%s: code %d, and the handle is %s", call, code,
                     win == MPI_WIN_NULL ? "MPI_WIN_NULL" : "another one");
}

// No handle of any window.
static MPI_Win nonsense(void)
{
    MPI_Win win;
    memset(&win, 0x35, sizeof win);
    return win;
}

int main(int argc, char **argv)
{
    long memory[2], *base;
    MPI_Win win;
    check_start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    win = nonsense();
    int code = MPI_Win_allocate(-8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    is_null("MPI_Win_allocate", code, win);
    win = nonsense();
    code = MPI_Win_allocate_shared(-8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    is_null("MPI_Win_allocate_shared", code, win);
    win = nonsense();
    code = MPI_Win_create(memory, sizeof memory, -1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    is_null("MPI_Win_create", code, win);
    return check_end();
}
