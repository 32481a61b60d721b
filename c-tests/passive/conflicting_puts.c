// Puts and gets that conflict end, without an error, and change no other bytes: each byte is one of
// those that a rank put. MPI-4.1 section 12.7 leaves the values undefined, and runtimes of global
// address space languages need that nothing worse happens (docs/concepts/memory.md).
// ranks: 2 4

#include "check.h"

enum { BYTES = 4096, EDGE = 8, ROUNDS = 200 };

int main(int argc, char **argv)
{
    MPI_Win win;
    unsigned char mine[BYTES], got[BYTES];
    check_start(&argc, &argv);
    unsigned char *base = window_of(EDGE + BYTES + EDGE, 1, &win);
    memset(mine, rank + 1, sizeof mine);
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++) {
        // All lengths and offsets: whole words, and parts of them.
        int first = round % 16, length = BYTES - 2 * first - round % 8;
        OK(MPI_Put(mine, length, MPI_BYTE, 0, EDGE + first, length, MPI_BYTE, win));
        OK(MPI_Get(got, BYTES, MPI_BYTE, 0, EDGE, BYTES, MPI_BYTE, win));
        OK(MPI_Win_flush(0, win));
        for (int i = 0; i < BYTES; i++)
            CHECK(got[i] <= size);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int i = 0; i < EDGE; i++) {
        CHECK_EQ(base[i], 0);
        CHECK_EQ(base[EDGE + BYTES + i], 0);
    }
    for (int i = 0; rank == 0 && i < BYTES; i++)
        CHECK(base[EDGE + i] >= 1 && base[EDGE + i] <= size);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
