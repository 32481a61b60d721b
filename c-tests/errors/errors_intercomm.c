// A window over an intercommunicator is an error that goes to the error handler of that
// communicator, and to no other. MPI-4.1 sections 9.3 and 12.2.2.
// ranks: 2 4
// settings: FOMPI_STRICT=1

#include "check.h"

static int calls;

static void count(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    calls++;
}

int main(int argc, char **argv)
{
    MPI_Comm half, inter;
    MPI_Errhandler counting;
    MPI_Win win;
    void *base;
    check_start_within(20, &argc, &argv);
    int side = rank < size / 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? size / 2 : 0, 7, &inter));
    OK(MPI_Comm_create_errhandler(count, &counting));
    OK(MPI_Comm_set_errhandler(inter, counting));
    EXPECT(MPI_Win_allocate(64, 1, MPI_INFO_NULL, inter, &base, &win), MPI_ERR_COMM);
    CHECK_EQ(calls, 1);
    EXPECT(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, inter, &base, &win), MPI_ERR_COMM);
    CHECK_EQ(calls, 2);
    OK(MPI_Errhandler_free(&counting));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
    return check_end();
}
