// A window whose inner pages are adopted and whose edges are not, because these are mapped from a
// file: all ranks, the owner too, change elements inside, at the edges and across them, by all kinds
// of calls. With the library a second window over the same memory, and one over a part of it, begin
// and end meanwhile. MPI-4.1 sections 12.2.1 and 12.7.1.
// ranks: 2 3 4
// settings: FOMPI_ADOPT=auto

#include "edges.h"

enum { ROW = 2048, NEAR = 40, APART = 50 };

// A turn takes 1 ms, and 0.3 s over the emulated device of a virtual machine, where CHECK_TIMES is set.
static int turns = 600;

// Puts and gets across all of a row of bytes of this rank that follows other rows.
static void copy_row(MPI_Win win, int target, int turn)
{
    static char row[ROW], got[ROW];
    memset(row, 'a' + (rank + turn) % 20, ROW);
    const MPI_Aint at = 8 * LONGS + rank * ROW;
    OK(MPI_Put(row, ROW, MPI_BYTE, target, at, ROW, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(got, ROW, MPI_BYTE, target, at, ROW, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    CHECK(memcmp(row, got, ROW) == 0);
}

static void work(MPI_Win win)
{
    const long one = 1;
    long before;
    OK(MPI_Win_lock_all(0, win));
    for (int turn = 0; turn < turns; turn++) {
        for (int target = 0; target < size; target++) {
            add_ones(win, target, turn);
            copy_row(win, target, turn);
            for (int n = 0; n < NEAR; n++) { // counters of their own, at both edges and between
                const MPI_Aint at = 8 * LONGS + size * ROW + 8 * n * (MPI_Aint)APART;
                OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, at, MPI_SUM, win));
            }
            OK(MPI_Win_flush(target, win));
        }
    }
    OK(MPI_Win_unlock_all(win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (getenv("CHECK_TIMES") != NULL)
        turns = 30;
    const int bytes = 8 * LONGS + size * ROW + 8 * NEAR * APART;
    char *memory = memory_with_edges(bytes);
    MPI_Win win = window_over(memory, bytes, 1);
    work(win);
    if (library_is_here()) {
        MPI_Win again = window_over(memory, bytes, 1), part = window_over(memory + 8000, 4000, 1);
        OK(MPI_Win_free(&win));
        work(again);
        OK(MPI_Win_free(&part));
        work(again);
        win = again;
    }
    OK(MPI_Win_free(&win));
    const long rounds = library_is_here() ? 3 : 1;
    const long *longs = (const long *)memory;
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(longs[i], rounds * turns * size);
    for (int n = 0; n < NEAR; n++)
        CHECK_EQ(*(const long *)(memory + 8 * LONGS + size * ROW + 8 * n * APART), rounds * turns * size);
    for (int i = 0; i < size * ROW; i++)
        CHECK_EQ(memory[8 * LONGS + i], 'a' + (i / ROW + turns - 1) % 20);
    return check_end();
}
