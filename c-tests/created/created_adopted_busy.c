// A target that computes in its adopted memory, and makes no MPI call, delays no rank that puts,
// gets and accumulates there. It also changes bytes of its own meanwhile, and no change is lost.
// MPI-4.1 section 12.7.3.
// ranks: 2 3 4
// plain ranks: 2
// settings: FOMPI_ADOPT=always

#define _GNU_SOURCE
#include "adopted.h"

enum { TIMES = 300, RANKS_MAX = 4, WORDS = PAGE / sizeof(long), PAGES = 3 + RANKS_MAX };
enum { FLAG = 0, SUM = 1, OWN = 2 };

static MPI_Win win;

static void work_on(int target)
{
    const long one = 1;
    long values[WORDS], got[WORDS], before;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    for (int turn = 0; turn < TIMES; turn++) {
        const MPI_Aint block = (MPI_Aint)WORDS * (2 + rank) + turn % 100;
        for (size_t n = 0; n < WORDS / 2; n++)
            values[n] = 1000 * rank + turn + (long)n;
        OK(MPI_Put(values, WORDS / 2, MPI_LONG, target, block, WORDS / 2, MPI_LONG, win));
        OK(MPI_Win_flush(target, win));
        OK(MPI_Get(got, WORDS / 2, MPI_LONG, target, block, WORDS / 2, MPI_LONG, win));
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, SUM, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        CHECK_EQ(memcmp(values, got, sizeof got / 2), 0);
        CHECK(before >= turn && before < TIMES * (size - 1));
    }
    OK(MPI_Win_unlock(target, win));
}

// The others meet without the target before they release it.
static void release(int target)
{
    const long one = 1;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Put(&one, 1, MPI_LONG, target, FLAG, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
}

int main(int argc, char **argv)
{
    MPI_Comm others;
    check_start(&argc, &argv);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &others));
    volatile long *base = (volatile long *)touched_pages(PAGES);
    memset((void *)base, 0, PAGES * PAGE);
    win = window_over((void *)base, PAGES * PAGE, sizeof(long));
    check_adopted((void *)base);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank < size - 1) {
        work_on(size - 1);
        OK(MPI_Barrier(others));
        if (rank == 0)
            release(size - 1);
    } else {
        long computed = 0;
        while (base[FLAG] == 0) {
            base[OWN]++;
            computed++;
        }
        CHECK_EQ(base[OWN], computed);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    CHECK_EQ(base[SUM], rank == size - 1 ? TIMES * (size - 1) : 0);
    OK(MPI_Comm_free(&others));
    return check_end();
}
