// A rank waits for an exclusive lock of a target until its holders release it. Meanwhile the holders
// accumulate there, all at once and often: none of them waits for the rank that waits for them.
// MPI-4.1 sections 12.5.3 and 12.7.1.
// ranks: 4 8

#include "check.h"

enum { COUNT = 16, TIMES = 400 };

static MPI_Win win;

static void accumulate(void)
{
    double ones[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    for (int i = 0; i < TIMES; i++)
        OK(MPI_Accumulate(ones, COUNT, MPI_DOUBLE, 0, 0, COUNT, MPI_DOUBLE, MPI_SUM, win));
}

// Rank 0 is the target and the last one the writer; the others hold locks.
static void use(int all, double wanted)
{
    double sums[COUNT];
    const int writes = rank == size - 1, holds = rank > 0 && !writes;
    if (holds && all)
        OK(MPI_Win_lock_all(0, win));
    if (holds && !all)
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (writes) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(sums, COUNT, MPI_DOUBLE, 0, 0, COUNT, MPI_DOUBLE, win));
        OK(MPI_Win_unlock(0, win));
        for (int i = 0; i < COUNT; i++)
            CHECK_EQ(sums[i], wanted);
    }
    if (holds) {
        usleep(100000); // until it waits
        accumulate();
        OK(all ? MPI_Win_unlock_all(win) : MPI_Win_unlock(0, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    window_of(COUNT * sizeof(double), sizeof(double), &win);
    for (int turn = 0; turn < 2; turn++)
        use(turn, (turn + 1.0) * TIMES * (size - 2));
    OK(MPI_Win_free(&win));
    return check_end();
}
