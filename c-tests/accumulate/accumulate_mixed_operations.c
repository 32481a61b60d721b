// All ranks update the same words at once, each with another operation: sums, exclusive ors and
// ors, by different calls, and no update is lost. MPI-4.1 section 12.7.1 promises it for one
// operation with MPI_NO_OP (accumulate_ops); libfompi promises it for all (docs/concepts/memory.md).
// ranks: 2 4 8
// plain ranks: 2 4

#include "check.h"

#include <stdint.h>

enum { ROUNDS = 201, WORDS = 3, SUMMED = 1 << 16 };

// Sums change the upper bits, and no carry reaches them; each rank has two of the lower bits.
static void update(MPI_Win win, int round, MPI_Aint word)
{
    const int32_t sum = SUMMED, toggled = 1 << (2 * (rank % 8)), set = 2 << (2 * (rank % 8));
    int32_t before;
    if (round % 2 == 0)
        OK(MPI_Accumulate(&sum, 1, MPI_INT32_T, 0, word, 1, MPI_INT32_T, MPI_SUM, win));
    else
        OK(MPI_Fetch_and_op(&sum, &before, MPI_INT32_T, 0, word, MPI_SUM, win));
    OK(MPI_Get_accumulate(&toggled, 1, MPI_INT32_T, &before, 1, MPI_INT32_T, 0, word, 1,
                          MPI_INT32_T, MPI_BXOR, win));
    OK(MPI_Win_flush(0, win));
    // No other rank changes this bit.
    CHECK_EQ((before & toggled) != 0, round % 2);
    OK(MPI_Accumulate(&set, 1, MPI_INT32_T, 0, word, 1, MPI_INT32_T, MPI_BOR, win));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    int32_t *base = window_of(WORDS * sizeof *base, sizeof *base, &win);
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++)
        for (int word = 0; word < WORDS; word++)
            update(win, round, word);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int word = 0; rank == 0 && word < WORDS; word++)
        CHECK_EQ(base[word], (int32_t)((1L << (2 * size)) - 1) + ROUNDS * size * SUMMED);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
