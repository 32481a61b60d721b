// A program that is linked with libfompi behind its MPI: notified operations are refused on the MPI's
// windows, and the MPI's own calls work.

#include "../robust.h"

#include "../../../include/fompi_notify.h"

static void refused(int code)
{
    CHECK(class_of(code) == MPI_ERR_UNSUPPORTED_OPERATION);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Count value = 7;
    int *base, number = 7;
    start(60, &argc, &argv);
    OK(MPI_Win_allocate(64, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    refused(FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 1));
    refused(FOMPI_Win_get_num_notify(win, 0, &number));
    refused(FOMPI_Win_get_notify_value(win, 0, &value));
    refused(FOMPI_Win_wait_notify(win, 0, 1));
    OK(MPI_Win_lock_all(0, win));
    *base = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    refused(FOMPI_Put_notify(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, 0, win));
    OK(MPI_Win_unlock_all(win));
    CHECK(*base == 0 && number == 7 && value == 7);
    OK(MPI_Win_free(&win));
    MPI_Finalize();
    return 0;
}
