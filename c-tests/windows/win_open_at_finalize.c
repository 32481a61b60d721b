// Ending MPI with a window still open ends the program cleanly: what was in flight in its closed
// epochs has arrived before. MPI-4.1 sections 11.2.2 and 12.2.5.
// ranks: 1 2 4

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win, freed;
    int value = 5;
    check_start(&argc, &argv);
    int *base = window_of(64, 4, &win);
    window_of(64, 4, &freed);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(base[0], 5);
    OK(MPI_Win_free(&freed));
    return check_end();
}
