// Errors in the creation of a window are raised on the communicator: its handler gets the handle
// of the communicator that the program passed, also of a duplicate, and the code that the call
// returns. A new window does not take over that handler. MPI-4.1 sections 9.3, 12.2 and 12.6.1.
// ranks: 1 2
// settings: FOMPI_STRICT=1
// between nodes: shared windows are left to the host MPI

#include "check.h"

static int calls, last_code;
static MPI_Comm last_comm;

static void note(MPI_Comm *comm, int *code, ...)
{
    calls++;
    last_comm = *comm;
    last_code = *code;
}

#define REACHES(call, comm, ...) do { \
    int before_ = calls, code_ = (call); \
    EXPECT(code_, __VA_ARGS__); \
    CHECK_EQ(calls, before_ + 1); \
    CHECK(last_comm == (comm)); \
    CHECK_EQ(last_code, code_); \
} while (0)

static void check_communicator(MPI_Comm comm)
{
    static int memory[4];
    MPI_Errhandler handler;
    MPI_Win win = MPI_WIN_NULL;
    void *base;
    OK(MPI_Comm_create_errhandler(note, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Errhandler_free(&handler));
    REACHES(MPI_Win_allocate(-8, 1, MPI_INFO_NULL, comm, &base, &win), comm, MPI_ERR_SIZE);
    REACHES(MPI_Win_allocate(64, -4, MPI_INFO_NULL, comm, &base, &win), comm, MPI_ERR_DISP,
            MPI_ERR_ARG);
    REACHES(MPI_Win_allocate_shared(-8, 1, MPI_INFO_NULL, comm, &base, &win), comm, MPI_ERR_SIZE);
    REACHES(MPI_Win_create(memory, -8, 1, MPI_INFO_NULL, comm, &win), comm, MPI_ERR_SIZE);
    REACHES(MPI_Win_create(memory, 16, 0, MPI_INFO_NULL, comm, &win), comm, MPI_ERR_DISP,
            MPI_ERR_ARG);
    int before = calls;
    OK(MPI_Win_create(memory, 16, 4, MPI_INFO_NULL, comm, &win));
    OK(MPI_Win_get_errhandler(win, &handler));
    CHECK(handler == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    EXPECT(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    CHECK_EQ(calls, before);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
}

int main(int argc, char **argv)
{
    MPI_Comm comm, again;
    check_start(&argc, &argv);
    check_communicator(MPI_COMM_WORLD);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    check_communicator(comm);
    OK(MPI_Comm_split(comm, 0, size - rank, &again));
    OK(MPI_Comm_free(&comm));
    check_communicator(again);
    OK(MPI_Comm_free(&again));
    check_communicator(MPI_COMM_SELF);
    return check_end();
}
