// Shared and exclusive locks on oneself and on others: what was put under a lock is there once the
// lock is given back. MPI-4.1 section 12.5.3.
// ranks: 1 2 4 8
// plain ranks: 1 2 4

#include "check.h"

static void put_and_read_back(MPI_Win win, int type, int target, int mark)
{
    int value = mark + rank, got = -1;
    OK(MPI_Win_lock(type, target, 0, win));
    OK(MPI_Put(&value, 1, MPI_INT, target, rank, 1, MPI_INT, win));
    OK(MPI_Win_unlock(target, win));
    OK(MPI_Win_lock(type, target, 0, win));
    OK(MPI_Get(&got, 1, MPI_INT, target, rank, 1, MPI_INT, win));
    OK(MPI_Win_unlock(target, win));
    CHECK_EQ(got, value);
}

static void all_modes(MPI_Win win)
{
    for (int target = 0; target < size; target++) {
        put_and_read_back(win, MPI_LOCK_SHARED, target, 100);
        put_and_read_back(win, MPI_LOCK_EXCLUSIVE, target, 200);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Epochs without any operation are as good as others.
static void empty_epochs(MPI_Win win)
{
    for (int i = 0; i < 20; i++) {
        OK(MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, (rank + i) % size, 0, win));
        OK(MPI_Win_unlock((rank + i) % size, win));
    }
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_unlock_all(win));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    int *base = window_of(64 * sizeof(int), sizeof(int), &win);
    all_modes(win);
    empty_epochs(win);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK_EQ(base[previous_rank()], 200 + previous_rank());
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
