// Windows over the same buffer made and freed five hundred times, with other sizes and places each
// time. All of them work, and nothing is left open at the end. MPI-4.1 sections 12.2.1 and 12.2.5.
// ranks: 1 2 4
// plain ranks: 1 2

#include "created.h"

#include <dirent.h>

enum { TURNS = 500, LONGS = 5000, SETTLED = 300 };

// Descriptors that this process has open.
static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    CHECK(folder != NULL);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

// The longs of a rank's window, different on each rank and in each turn.
static int longs_in(int turn, int target) { return 1 + (turn * 37 + target * 11) % (LONGS / 2); }

// Some turns move data, others only make and free the window.
static void use(MPI_Win win, int turn, long *base)
{
    const int theirs = longs_in(turn, next_rank()), mine = longs_in(turn, rank);
    const long values[2] = {10L * turn + rank, turn};
    long before = -1;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(values, 1, MPI_LONG, next_rank(), theirs - 1, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[mine - 1], 10 * turn + previous_rank());
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(&values[1], 1, MPI_LONG, next_rank(), theirs - 1, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(base[mine - 1], 11 * turn + previous_rank());
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Fetch_and_op(&values[1], &before, MPI_LONG, next_rank(), theirs - 1, MPI_REPLACE, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(before, 11 * turn + rank);
}

int main(int argc, char **argv)
{
    int descriptors = 0;
    // Between nodes a window takes milliseconds where ranks share cores.
    check_start_within(150, &argc, &argv);
    long *heap = heap_memory(LONGS * sizeof(long));
    long *from_mpi = mpi_memory(LONGS * sizeof(long));
    for (int turn = 0; turn < TURNS; turn++) {
        long *base = (turn % 5 == 0 ? from_mpi : heap) + turn / 2 % 100 * 2;
        MPI_Win win = window_over(base, longs_in(turn, rank) * (MPI_Aint)sizeof(long),
                                  sizeof(long));
        if (turn % 20 < 2)
            use(win, turn, base);
        OK(MPI_Win_free(&win));
        CHECK(win == MPI_WIN_NULL);
        if (turn == SETTLED)
            descriptors = open_descriptors();
    }
    CHECK(open_descriptors() <= descriptors + 2);
    OK(MPI_Free_mem(from_mpi));
    return check_end();
}
