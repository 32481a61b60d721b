// An error in the making of a window goes to the error handler of its communicator, once on each
// rank, and to no other. MPI-4.1 sections 9.3 and 12.6.1.
// ranks: 1 2

#include "check.h"

static int calls, other_calls;
static MPI_Comm called_for;

static void note(MPI_Comm *comm, int *error, ...)
{
    (void)error;
    called_for = *comm;
    calls++;
}

static void note_other(MPI_Comm *comm, int *error, ...)
{
    (void)comm;
    (void)error;
    other_calls++;
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    MPI_Errhandler handler, other;
    MPI_Win win;
    void *base;
    check_start_within(20, &argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(note, &handler));
    OK(MPI_Comm_create_errhandler(note_other, &other));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, other));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, other));
    EXPECT(MPI_Win_allocate(-8, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_SIZE, MPI_ERR_ARG);
    CHECK_EQ(calls, 1);
    CHECK(called_for == comm);
    EXPECT(MPI_Win_allocate_shared(-8, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_SIZE,
           MPI_ERR_ARG);
    CHECK_EQ(calls, 2);
    EXPECT(MPI_Win_create(&win, -8, 1, MPI_INFO_NULL, comm, &win), MPI_ERR_SIZE, MPI_ERR_ARG);
    CHECK_EQ(calls, 3);
    CHECK_EQ(other_calls, 0);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Errhandler_free(&other));
    OK(MPI_Comm_free(&comm));
    return check_end();
}
