// A target that computes, and makes no MPI call, does not delay ranks that lock it, accumulate,
// put and flush: it stops only when all of them have finished. MPI-4.1 section 12.7.3.
// ranks: 2 4 8
// plain ranks: 2

#include "created.h"

enum { TIMES = 50, RANKS_MAX = 8, FLAG = 0, SUM = 1, FETCHED = 2, GUARDED = 3, PLACES = 8 };
enum { LONGS = PLACES + 64 * RANKS_MAX };

static MPI_Win win;
static MPI_Aint start;

static void add_guarded(int target)
{
    long value;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Get(&value, 1, MPI_LONG, target, start + GUARDED, 1, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    value++;
    OK(MPI_Put(&value, 1, MPI_LONG, target, start + GUARDED, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
}

static void work_on(int target)
{
    long values[64], got[64], before, one = 1;
    MPI_Aint block = start + PLACES + 64 * rank;
    for (int i = 0; i < TIMES; i++) {
        for (int k = 0; k < 64; k++)
            values[k] = 1000 * rank + i + k;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        OK(MPI_Put(values, 64, MPI_LONG, target, block, 64, MPI_LONG, win));
        OK(MPI_Win_flush(target, win));
        OK(MPI_Get(got, 64, MPI_LONG, target, block, 64, MPI_LONG, win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, target, start + SUM, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, start + FETCHED, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        OK(MPI_Win_unlock(target, win));
        CHECK_EQ(memcmp(values, got, sizeof got), 0);
        CHECK(before >= i && before < TIMES * (size - 1));
        add_guarded(target);
    }
}

static void release(int target)
{
    const long one = 1;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Put(&one, 1, MPI_LONG, target, start + FLAG, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
}

// The last rank is the target. The others meet without it before they release it.
static void use(volatile long *base, MPI_Comm others)
{
    OK(MPI_Bcast(&start, 1, MPI_AINT, size - 1, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank < size - 1) {
        work_on(size - 1);
        OK(MPI_Barrier(others));
        if (rank == 0)
            release(size - 1);
    } else {
        check_here(__FILE__, __LINE__);
        while (base[FLAG] == 0)
            ;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == size - 1) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
        CHECK_EQ(base[SUM], TIMES * (size - 1));
        CHECK_EQ(base[FETCHED], TIMES * (size - 1));
        CHECK_EQ(base[GUARDED], TIMES * (size - 1));
        OK(MPI_Win_unlock(rank, win));
    }
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    MPI_Comm others;
    check_start_within(60, &argc, &argv);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &others));
    use(window_of(LONGS * sizeof(long), sizeof(long), &win), others);
    long *memory = heap_memory(LONGS * sizeof(long));
    win = window_over(memory, LONGS * sizeof(long), sizeof(long));
    use(memory, others);
    OK(MPI_Comm_free(&others));
    return check_end();
}
