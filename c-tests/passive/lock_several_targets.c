// One origin holds locks on several targets at once, shared and exclusive mixed, and gives them
// back in any order. MPI-4.1 section 12.5.3.
// ranks: 1 2 4 8
// plain ranks: 1 2 4

#include "check.h"

// All locks are taken in ascending order of rank, so that two origins cannot wait for each other.
static void exclusive_everywhere(MPI_Win win, int round)
{
    int values[64], got[64];
    for (int target = 0; target < size; target++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        OK(MPI_Get(&got[target], 1, MPI_INT, target, 0, 1, MPI_INT, win));
    }
    for (int target = 0; target < size; target++) {
        OK(MPI_Win_flush(target, win));
        values[target] = got[target] + 1;
        OK(MPI_Put(&values[target], 1, MPI_INT, target, 0, 1, MPI_INT, win));
    }
    for (int i = 0; i < size; i++) {
        int target = round % 2 ? i : size - 1 - i;
        OK(MPI_Win_unlock(target, win));
        // All counters move together, because every change holds all the locks.
        CHECK_EQ(got[target], got[0]);
    }
}

static void mixed(MPI_Win win)
{
    int values[64];
    for (int target = 0; target < size; target++) {
        int type = target == size - 1 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
        OK(MPI_Win_lock(type, target, 0, win));
    }
    for (int target = 0; target < size; target++) {
        values[target] = 50 + target;
        OK(MPI_Put(&values[target], 1, MPI_INT, target, 1 + rank, 1, MPI_INT, win));
    }
    for (int target = size - 1; target >= 0; target--)
        OK(MPI_Win_unlock(target, win));
}

// Each origin holds a shared lock of the last rank while it adds to a number of the first one under
// an exclusive lock.
enum { TURNS = 1000, NUMBER = 100 };

static void exclusive_beside_shared(MPI_Win win)
{
    int value;
    for (int turn = 0; turn < TURNS; turn++) {
        if (size > 1)
            OK(MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, win));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(&value, 1, MPI_INT, 0, NUMBER, 1, MPI_INT, win));
        OK(MPI_Win_flush(0, win));
        value++;
        OK(MPI_Put(&value, 1, MPI_INT, 0, NUMBER, 1, MPI_INT, win));
        OK(MPI_Win_unlock(0, win));
        if (size > 1)
            OK(MPI_Win_unlock(size - 1, win));
    }
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    int *base = window_of(128 * sizeof(int), sizeof(int), &win);
    for (int round = 0; round < 5; round++)
        exclusive_everywhere(win, round);
    mixed(win);
    // An origin of `mixed` holds the lock of the first rank and waits for that of the last one.
    OK(MPI_Barrier(MPI_COMM_WORLD));
    exclusive_beside_shared(win);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK_EQ(base[0], 5 * size);
    CHECK_EQ(base[NUMBER], rank == 0 ? TURNS * size : 0);
    for (int origin = 0; origin < size; origin++)
        CHECK_EQ(base[1 + origin], 50 + rank);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
