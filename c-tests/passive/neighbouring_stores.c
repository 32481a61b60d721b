// Stores of the target and operations of other ranks on neighbouring bytes of one word do not disturb
// each other: puts of single bytes, and sums of 16-bit integers. MPI-4.1 sections 12.4 and 12.7.
// ranks: 2 3

#include "check.h"

#include <stdint.h>

enum { WORDS = 64, ROUNDS = 300 };

// A word of eight bytes: some belong to the target, some to the other ranks.
struct word {
    uint16_t stored, summed;
    uint8_t stored_too, put[3];
};

static void operate(MPI_Win win, int round)
{
    const uint16_t one = 1;
    const uint8_t value = (uint8_t)(round + rank);
    for (int i = 0; i < WORDS; i++) {
        MPI_Aint at = i * (MPI_Aint)sizeof(struct word);
        OK(MPI_Put(&value, 1, MPI_UINT8_T, 0, at + 4 + rank, 1, MPI_UINT8_T, win));
        OK(MPI_Accumulate(&one, 1, MPI_UINT16_T, 0, at + 2, 1, MPI_UINT16_T, MPI_SUM, win));
    }
    OK(MPI_Win_flush(0, win));
}

// What the last store left is there: nothing has written it back.
static void store(volatile struct word *words, int round)
{
    for (int i = 0; i < WORDS; i++) {
        if (round > 0) {
            CHECK_EQ(words[i].stored, (uint16_t)(round - 1 + i));
            CHECK_EQ(words[i].stored_too, (uint8_t)(round - 1));
        }
        words[i].stored = (uint16_t)(round + i);
        words[i].stored_too = (uint8_t)round;
    }
}

static void store_until_all_is_summed(volatile struct word *words)
{
    int is_there;
    for (int round = 0; words[WORDS - 1].summed < ROUNDS * (size - 1); round++) {
        store(words, round);
        // For the progress that an MPI alone may need.
        if (round % 50 == 0)
            OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there,
                          MPI_STATUS_IGNORE));
    }
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    struct word *words = window_of(WORDS * sizeof *words, 1, &win);
    OK(MPI_Win_lock_all(0, win));
    if (rank == 0)
        store_until_all_is_summed(words);
    for (int round = 0; rank > 0 && round < ROUNDS; round++)
        operate(win, round);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int i = 0; rank == 0 && i < WORDS; i++) {
        CHECK_EQ(words[i].summed, ROUNDS * (size - 1));
        for (int other = 1; other < size; other++)
            CHECK_EQ(words[i].put[other - 1], (uint8_t)(ROUNDS - 1 + other));
    }
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
