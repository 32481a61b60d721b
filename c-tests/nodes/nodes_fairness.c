// All ranks, of the target's node and of others, want the same exclusive lock without a pause. Each
// goes on until all have had it often, so nobody can be left out forever. MPI-4.1 section 12.5.3.
// ranks: 2 4 8
// plain ranks: 2

#include "check.h"

enum { OFTEN = 40, RANKS_MAX = 64 };

static MPI_Win win;

// Under the lock: counts this rank's turn; returns whether all ranks have had enough.
static int take_turn(int target)
{
    long turns[RANKS_MAX];
    int enough = 1;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Get(turns, size, MPI_LONG, target, 0, size, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    turns[rank]++;
    for (int i = 0; i < size; i++)
        enough &= turns[i] >= OFTEN;
    OK(MPI_Put(&turns[rank], 1, MPI_LONG, target, rank, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
    return enough;
}

static void all_want(int target, const long *turns)
{
    long mine = 0, all[RANKS_MAX];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    do
        mine++;
    while (!take_turn(target));
    OK(MPI_Allgather(&mine, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD));
    if (rank == target) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
        for (int i = 0; i < size; i++)
            CHECK_EQ(turns[i], all[i]);
        OK(MPI_Win_unlock(rank, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK(size <= RANKS_MAX);
    long *turns = window_of(RANKS_MAX * (MPI_Aint)sizeof(long), sizeof(long), &win);
    all_want(0, turns);
    if (size > 1)
        all_want(size - 1, turns);
    OK(MPI_Win_free(&win));
    return check_end();
}
