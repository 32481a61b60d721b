// A region of no bytes is legal: it overlaps nothing, nothing in it can be reached, and it is
// detached as any other. MPI-4.1 section 12.2.4.
// ranks: 1 2 4

#include "dynamic.h"

static char memory[64];

static void works(MPI_Win win, MPI_Aint there, char value)
{
    char got = 0;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_CHAR, next_rank(), there, 1, MPI_CHAR, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Get(&got, 1, MPI_CHAR, next_rank(), there, 1, MPI_CHAR, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(got, value);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    MPI_Win win = dynamic_window();
    exchange(memory + 16, places);
    OK(MPI_Win_attach(win, memory, 0));
    OK(MPI_Win_attach(win, memory + 32, 0));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_attach(win, memory + 16, 16));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    works(win, places[next_rank()], 'a');
    // After the region: where it ends there is room for a region of no bytes, and it goes alone.
    OK(MPI_Win_detach(win, memory + 32));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    works(win, places[next_rank()], 'b');
    OK(MPI_Win_detach(win, memory + 16));
    OK(MPI_Win_free(&win));
    return check_end();
}
