// Creation where one rank alone gives a wrong size fails on every rank instead of leaving the
// others waiting, and the communicator works afterwards. MPI-4.1 sections 9.3 and 12.2.2.
// ranks: 2 4
// settings: FOMPI_STRICT=1

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Comm comm;
    MPI_Win win;
    void *base;
    check_start_within(20, &argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    int code = MPI_Win_allocate(rank == 0 ? -8 : 64, 1, MPI_INFO_NULL, comm, &base, &win);
    CHECK(code != MPI_SUCCESS);
    if (rank == 0)
        EXPECT(code, MPI_ERR_SIZE);
    OK(MPI_Barrier(comm));
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, comm, &base, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&comm));
    return check_end();
}
