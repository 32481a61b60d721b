// A tool in front makes one-sided calls of its own, on the program's window and on one that the
// program does not know, and both get what they want. MPI-4.1 section 15.2.
// ranks: 2 4
// profiler: asking

#include "check.h"

// From profiler/asking.c.
__attribute__((weak)) long asking_total(void);
__attribute__((weak)) long asking_old(void);
__attribute__((weak)) long asking_bytes(void);

enum { LONGS = 4, ROUNDS = 10 };

int main(int argc, char **argv)
{
    static long memory[LONGS];
    MPI_Win win;
    check_start(&argc, &argv);
    CHECK(asking_total != NULL && asking_old != NULL && asking_bytes != NULL);
    OK(MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    for (long round = 1; round <= ROUNDS; round++) {
        const long values[2] = {round, 100 * rank};
        OK(MPI_Put(values, 2, MPI_LONG, next_rank(), 1, 2, MPI_LONG, win));
        OK(MPI_Win_flush(next_rank(), win));
    }
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(asking_bytes(), 2 * ROUNDS * (long)sizeof(long));
    CHECK_EQ(asking_old(), ROUNDS * (ROUNDS - 1) / 2);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(asking_total(), size * asking_bytes());
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK_EQ(memory[1], ROUNDS);
    CHECK_EQ(memory[2], 100 * previous_rank());
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
