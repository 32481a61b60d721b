// Windows whose memory moves to shared memory while all ranks, the owner too, change it by all kinds
// of calls: inside of what moves, at its edges, which are mapped from a file and stay, and across
// them. No change is lost, and no call sees half of another one. Memory is not adopted at the creation
// of these windows, because one before each was freed unused. MPI-4.1 sections 12.3.4 and 12.7.1.
// ranks: 2 3 4
// settings: FOMPI_ADOPT=auto

#include "edges.h"
#include "nodes.h"

enum { WINDOWS = 12, TURNS = 9, ROW = 2048, NEAR = 40, APART = 50, SMALL = 24 };

// The displacement of the counters, one in each APART longs, behind a row of bytes of each rank.
static MPI_Aint counters(void) { return 8 * LONGS + size * ROW; }

// The displacement of the cells that small puts of a rank change.
static MPI_Aint cells(void) { return counters() + 8 * NEAR * APART; }

// Puts and gets all of this rank's row, and its cells by small puts, which may be gathered.
static void copy(MPI_Win win, int target, int turn)
{
    static char row[ROW], got[ROW];
    static long small[SMALL], back[SMALL];
    const MPI_Aint at = 8 * LONGS + rank * ROW;
    memset(row, 'a' + (rank + turn) % 20, ROW);
    OK(MPI_Put(row, ROW, MPI_BYTE, target, at, ROW, MPI_BYTE, win));
    for (int n = 0; n < SMALL; n++) {
        small[n] = 1000 * turn + n;
        OK(MPI_Put(&small[n], 1, MPI_LONG, target, cells() + 8 * (rank * SMALL + n), 1, MPI_LONG, win));
    }
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(got, ROW, MPI_BYTE, target, at, ROW, MPI_BYTE, win));
    OK(MPI_Get(back, SMALL, MPI_LONG, target, cells() + 8 * rank * SMALL, SMALL, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    CHECK(memcmp(row, got, ROW) == 0);
    CHECK(memcmp(small, back, sizeof small) == 0);
}

static void count(MPI_Win win, int target, int turn)
{
    const long one = 1;
    long before, zero = 0, expected = -1;
    for (int n = 0; n < NEAR; n++) {
        const MPI_Aint at = counters() + 8 * n * (MPI_Aint)APART;
        if ((turn + n) % 3 > 0) {
            OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, at, MPI_SUM, win));
            continue;
        }
        do { // one more by compare-and-swap
            OK(MPI_Fetch_and_op(&zero, &expected, MPI_LONG, target, at, MPI_NO_OP, win));
            OK(MPI_Win_flush(target, win));
            const long next = expected + 1;
            OK(MPI_Compare_and_swap(&next, &expected, &before, MPI_LONG, target, at, win));
            OK(MPI_Win_flush(target, win));
        } while (before != expected);
    }
    OK(MPI_Win_flush(target, win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const int bytes = (int)cells() + 8 * SMALL * size;
    char *memory = memory_with_edges(bytes);
    int moved = 0;
    for (int windows = 0; windows < WINDOWS; windows++) {
        MPI_Win win = window_over(memory, bytes, 1); // unused
        OK(MPI_Win_free(&win));
        win = window_over(memory, bytes, 1);
        CHECK(!is_shared(memory + 8192));
        OK(MPI_Win_lock_all(0, win));
        for (int turn = 0; turn < TURNS; turn++)
            for (int target = 0; target < size; target++) {
                add_ones(win, target, turn);
                copy(win, target, turn);
                count(win, target, turn);
            }
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Win_fence(0, win)); // in which memory moves at the latest
        moved += is_shared(memory + 8192);
        OK(MPI_Win_free(&win));
        CHECK(!is_shared(memory + 8192));
    }
    // Most of them: it depends on the time that moves take here. Over several nodes none does.
    OK(MPI_Allreduce(MPI_IN_PLACE, &moved, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(!library_is_here() || geteuid() != 0 || ranks_per_node() > 0 || moved > 0);
    const long rounds = WINDOWS * TURNS * size, *longs = (const long *)memory;
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(longs[i], rounds);
    for (int n = 0; n < NEAR; n++)
        CHECK_EQ(*(const long *)(memory + counters() + 8 * n * APART), rounds);
    return check_end();
}
