// MPI_Win_free returns when all ranks have called it: then nobody accesses the memory any more, and
// its owner may use it for anything. MPI-4.1 section 12.2.5.
// ranks: 2 4

#include "check.h"

enum { PUTS = 2000 };

static void last_rank_puts(MPI_Win win)
{
    for (int i = 1; i <= PUTS; i++) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        OK(MPI_Put(&i, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        OK(MPI_Win_unlock(0, win));
    }
}

int main(int argc, char **argv)
{
    static volatile int memory[4];
    MPI_Win win;
    int token = 0;
    check_start(&argc, &argv);
    OK(MPI_Win_create((void *)memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                      &win));
    // The last rank begins when rank 0 is about to free the window.
    if (rank == 0)
        OK(MPI_Send(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD));
    if (rank == size - 1) {
        OK(MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        last_rank_puts(win);
    }
    OK(MPI_Win_free(&win));
    if (rank == 0)
        CHECK_EQ(memory[0], PUTS);
    return check_end();
}
