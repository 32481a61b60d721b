// An exclusive lock excludes: a counter that all ranks read, increment and write back under it ends
// at the number of increments. MPI-4.1 section 12.5.3.
// ranks: 1 2 4 8
// plain ranks: 1 2

#include "check.h"

enum { ROUNDS = 40 };

static void increment(MPI_Win win, int target)
{
    long counter = -1;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Get(&counter, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    counter++;
    OK(MPI_Put(&counter, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
}

// The owner's own lock excludes the others too, though it loads and stores.
static void increment_own(MPI_Win win, long *base)
{
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    long counter = base[0];
    base[0] = counter + 1;
    OK(MPI_Win_unlock(rank, win));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    long *base = window_of(64, sizeof(long), &win);
    for (int i = 0; i < ROUNDS; i++) {
        increment(win, 0);
        increment(win, size - 1);
        increment_own(win, base);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long want = ROUNDS;
    want += rank == 0 ? ROUNDS * size : 0;
    want += rank == size - 1 ? ROUNDS * size : 0;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK_EQ(base[0], want);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
