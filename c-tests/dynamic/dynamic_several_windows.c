// The same memory may be in several windows, dynamic or not, in whole or in part; to detach it from
// one, or to free one, leaves the others. MPI-4.1 sections 12.2.1, 12.2.4 and 12.2.5.
// ranks: 1 2 4

#include "dynamic.h"

enum { LONGS = 512, WINDOWS = 3 };

static long memory[LONGS];

// The next rank's element takes a value through one window, and its owner sees it.
static void put_through(MPI_Win win, MPI_Aint disp, int element, long value)
{
    value += rank;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), disp, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    CHECK_EQ(memory[element], value - rank + previous_rank());
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Win wins[WINDOWS], created;
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    exchange(memory, places);
    const MPI_Aint there = places[next_rank()];
    const MPI_Aint half = MPI_Aint_add(there, LONGS / 2 * sizeof(long));
    OK(MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                      &created));
    for (int i = 0; i < WINDOWS; i++)
        wins[i] = dynamic_window();
    OK(MPI_Win_attach(wins[0], memory, sizeof memory));
    OK(MPI_Win_attach(wins[1], memory, sizeof memory));
    OK(MPI_Win_attach(wins[2], memory + LONGS / 2, sizeof memory / 2));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    put_through(wins[0], there, 0, 100);
    put_through(wins[1], there, 0, 200);
    put_through(wins[1], half, LONGS / 2, 300);
    put_through(wins[2], half, LONGS / 2, 400);
    put_through(created, LONGS / 2, LONGS / 2, 500);
    OK(MPI_Win_detach(wins[1], memory));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    put_through(wins[0], half, LONGS / 2, 600);
    put_through(wins[2], half, LONGS / 2, 700);
    OK(MPI_Win_free(&created));
    OK(MPI_Win_free(&wins[0]));
    put_through(wins[2], half, LONGS / 2, 800);
    // In another window, the memory can be attached anew.
    OK(MPI_Win_attach(wins[1], memory + 8, sizeof memory - 8 * sizeof(long)));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    put_through(wins[1], half, LONGS / 2, 900);
    OK(MPI_Win_detach(wins[1], memory + 8));
    OK(MPI_Win_detach(wins[2], memory + LONGS / 2));
    OK(MPI_Win_free(&wins[1]));
    OK(MPI_Win_free(&wins[2]));
    return check_end();
}
