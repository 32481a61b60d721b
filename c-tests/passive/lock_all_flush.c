// Inside lock_all each member of the flush family completes what it promises, at one target or at
// all, and sync makes local stores and arrivals visible. MPI-4.1 sections 12.5.3 and 12.5.4.
// ranks: 1 2 4 8

#include "check.h"

enum { FEW = 100, COUNT = 5000 };

static int *base;
static MPI_Win win;

static void flush_completes_at_the_target(void)
{
    int value[2] = {10 + rank, 20 + rank}, got = -1;
    OK(MPI_Put(&value[0], 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Get(&got, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_flush(next_rank(), win));
    CHECK_EQ(got, 10 + rank);
    // The target learns of it by a message and finds it there.
    OK(MPI_Put(&value[1], 1, MPI_INT, next_rank(), 1, 1, MPI_INT, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    CHECK_EQ(base[1], 20 + previous_rank());
}

// Few values or many.
static int count_of(int round) { return round < 2 ? FEW : COUNT; }

// After flush_local the origin may change its buffer; what was sent is what it was before.
static void flush_local_frees_the_buffer(void)
{
    static int values[COUNT];
    for (int round = 0; round < 4; round++) {
        const int count = count_of(round);
        for (int i = 0; i < count; i++)
            values[i] = 1000 * round + i;
        OK(MPI_Put(values, count, MPI_INT, next_rank(), 100 + round * COUNT, count, MPI_INT, win));
        if (round % 2)
            OK(MPI_Win_flush_local(next_rank(), win));
        else
            OK(MPI_Win_flush_local_all(win));
        memset(values, -1, sizeof values);
    }
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < count_of(round); i++)
            CHECK_EQ(base[100 + round * COUNT + i], 1000 * round + i);
}

static void flush_local_completes_a_get(void)
{
    for (int round = 0; round < 4; round++) {
        const int count = count_of(round);
        static int got[COUNT];
        memset(got, -1, sizeof got);
        OK(MPI_Get(got, count, MPI_INT, next_rank(), 100 + round * COUNT, count, MPI_INT, win));
        if (round % 2)
            OK(MPI_Win_flush_local(next_rank(), win));
        else
            OK(MPI_Win_flush_local_all(win));
        for (int i = 0; i < count; i++)
            CHECK_EQ(got[i], 1000 * round + i);
    }
}

static void flush_all_reaches_every_target(void)
{
    for (int round = 0; round < 20; round++) {
        int value = 100 * round + rank;
        for (int target = 0; target < size; target++)
            OK(MPI_Put(&value, 1, MPI_INT, target, 10 + rank, 1, MPI_INT, win));
        OK(MPI_Win_flush_all(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_sync(win));
        for (int origin = 0; origin < size; origin++)
            CHECK_EQ(base[10 + origin], 100 * round + origin);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

// Local stores are read by others after sync on both sides of a barrier.
static void sync_publishes_stores(void)
{
    int got = -1;
    base[50] = 900 + rank;
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Get(&got, 1, MPI_INT, next_rank(), 50, 1, MPI_INT, win));
    OK(MPI_Win_flush(next_rank(), win));
    CHECK_EQ(got, 900 + next_rank());
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of((100 + 4 * COUNT) * sizeof(int), sizeof(int), &win);
    OK(MPI_Win_lock_all(0, win));
    flush_completes_at_the_target();
    flush_local_frees_the_buffer();
    flush_local_completes_a_get();
    flush_all_reaches_every_target();
    sync_publishes_stores();
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_flush_local_all(win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
