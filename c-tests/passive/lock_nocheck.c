// Locks that say NOCHECK, because nobody else holds one that conflicts, do not disturb the locks
// that come after them. MPI-4.1 sections 12.5.3 and 12.5.5.
// ranks: 1 2 4 8

#include "check.h"

static void put_and_read_back(MPI_Win win, int type, int assert, int target, int mark)
{
    int value = mark + rank, got = -1;
    OK(MPI_Win_lock(type, target, assert, win));
    OK(MPI_Put(&value, 1, MPI_INT, target, rank, 1, MPI_INT, win));
    OK(MPI_Win_unlock(target, win));
    OK(MPI_Win_lock(type, target, assert, win));
    OK(MPI_Get(&got, 1, MPI_INT, target, rank, 1, MPI_INT, win));
    OK(MPI_Win_unlock(target, win));
    CHECK_EQ(got, value);
}

static void unchecked(MPI_Win win)
{
    for (int target = 0; target < size; target++)
        put_and_read_back(win, MPI_LOCK_SHARED, MPI_MODE_NOCHECK, target, 300);
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // Each rank alone uses its next one.
    put_and_read_back(win, MPI_LOCK_EXCLUSIVE, MPI_MODE_NOCHECK, next_rank(), 400);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void checked(MPI_Win win)
{
    for (int target = 0; target < size; target++) {
        put_and_read_back(win, MPI_LOCK_EXCLUSIVE, 0, target, 500);
        put_and_read_back(win, MPI_LOCK_SHARED, 0, target, 600);
    }
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    window_of(64 * sizeof(int), sizeof(int), &win);
    for (int round = 0; round < 3; round++) {
        unchecked(win);
        checked(win);
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
