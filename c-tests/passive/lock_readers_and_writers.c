// Readers under shared locks, and under lock_all, never see half of what a writer under an
// exclusive lock does, and all of them get through. MPI-4.1 section 12.5.3.
// ranks: 2 3 4 8
// plain ranks: 2 3

#include "check.h"

enum { COUNT = 64, ROUNDS = 40 };

static void write_all(MPI_Win win, int round)
{
    long values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = 1000L * rank + round;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    // In two halves, so that a reader in between would notice.
    OK(MPI_Put(values, COUNT / 2, MPI_LONG, 0, 0, COUNT / 2, MPI_LONG, win));
    OK(MPI_Win_flush(0, win));
    OK(MPI_Put(values, COUNT / 2, MPI_LONG, 0, COUNT / 2, COUNT / 2, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
}

static void read_all(MPI_Win win, int round)
{
    long values[COUNT];
    memset(values, -1, sizeof values);
    if (round % 2)
        OK(MPI_Win_lock_all(0, win));
    else
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Get(values, COUNT, MPI_LONG, 0, 0, COUNT, MPI_LONG, win));
    if (round % 2)
        OK(MPI_Win_unlock_all(win));
    else
        OK(MPI_Win_unlock(0, win));
    for (int i = 1; i < COUNT; i++)
        CHECK_EQ(values[i], values[0]);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    window_of(COUNT * sizeof(long), sizeof(long), &win);
    for (int round = 0; round < ROUNDS; round++) {
        // Every rank is now a writer, now a reader; about a quarter writes.
        if ((round + rank) % 4 == 0)
            write_all(win, round);
        else
            read_all(win, round);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return check_end();
}
