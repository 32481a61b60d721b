// No call makes a window over an intercommunicator or over MPI_COMM_NULL; each answers through the
// right handler and leaves the processes able to go on. MPI-4.1 sections 9.3 and 12.2.
// ranks: 2 4
// settings: FOMPI_STRICT=1
// between nodes: shared windows are left to the host MPI

#include "check.h"

enum { CALLS = 7 };

static long memory[8];

// Makes a window in one of the ways there are; MPI_ERR_COMM from calls that the MPI has not got.
static int make(int way, MPI_Comm comm, MPI_Win *win)
{
    void *base;
    switch (way) {
    case 0:
        return MPI_Win_allocate(64, 1, MPI_INFO_NULL, comm, &base, win);
    case 1:
        return MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, &base, win);
    case 2:
        return MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, comm, win);
    case 3:
        return MPI_Win_create_dynamic(MPI_INFO_NULL, comm, win);
#if MPI_VERSION >= 4
    case 4:
        return MPI_Win_allocate_c(64, 1, MPI_INFO_NULL, comm, &base, win);
    case 5:
        return MPI_Win_allocate_shared_c(64, 1, MPI_INFO_NULL, comm, &base, win);
    case 6:
        return MPI_Win_create_c(memory, sizeof memory, 1, MPI_INFO_NULL, comm, win);
#endif
    default:
        return MPI_ERR_COMM;
    }
}

int main(int argc, char **argv)
{
    MPI_Comm half, inter, merged;
    MPI_Win win;
    check_start_within(30, &argc, &argv);
    const int side = rank < size / 2;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? size / 2 : 0, 7, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Intercomm_merge(inter, side, &merged));
    for (int way = 0; way < CALLS; way++) {
        EXPECT(make(way, inter, &win), MPI_ERR_COMM);
        EXPECT(make(way, MPI_COMM_NULL, &win), MPI_ERR_COMM);
        // What it was merged into is as good as any.
        OK(make(way % 4, merged, &win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Win_free(&win));
    }
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
    return check_end();
}
