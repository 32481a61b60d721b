// Long puts and gets that follow each other through a large window move all of their bytes and no
// others, at any alignment, again and again. MPI-4.1 sections 12.3.1 and 12.3.2.
// ranks: 2 3

#include "check.h"

enum { BLOCKS = 40, BLOCK = 600 * 1001 + 5, GAP = 3, BYTES = BLOCKS * (BLOCK + GAP) };

static unsigned char *base, *values, *got;
static MPI_Win win;

static unsigned char value(int of, int place, int time)
{
    return (unsigned char)(place * 7 + place / 4096 + 31 * of + 5 * time);
}

// Block by block, with or without a gap between two of them.
static void sweep(int first, int gap, int time)
{
    int origin = previous_rank();
    for (int i = 0; i < BYTES; i++) {
        values[i] = value(rank, i, time);
        base[i] = 0xee;
        got[i] = 0xdd;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int b = 0; b < BLOCKS - 1; b++) {
        int at = first + b * (BLOCK + gap);
        OK(MPI_Put(values + at, BLOCK, MPI_BYTE, next_rank(), at, BLOCK, MPI_BYTE, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int b = 0; b < BLOCKS - 1; b++) {
        int at = first + b * (BLOCK + gap);
        OK(MPI_Get(got + at, BLOCK, MPI_BYTE, next_rank(), at, BLOCK, MPI_BYTE, win));
    }
    OK(MPI_Win_unlock_all(win));
    for (int i = 0; i < BYTES; i++) {
        int b = (i - first) / (BLOCK + gap), at = (i - first) % (BLOCK + gap);
        int moved = i >= first && b < BLOCKS - 1 && at < BLOCK;
        if (base[i] != (moved ? value(origin, i, time) : 0xee)) CHECK_EQ(base[i], i);
        if (got[i] != (moved ? values[i] : 0xdd)) CHECK_EQ(got[i], i);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(BYTES, 1, &win);
    values = malloc(BYTES);
    got = malloc(BYTES);
    CHECK(values && got);
    for (int time = 0; time < 2; time++) {
        sweep(0, 0, time);
        sweep(17, 0, time);
        sweep(64, GAP, time);
    }
    free(values);
    free(got);
    OK(MPI_Win_free(&win));
    return check_end();
}
