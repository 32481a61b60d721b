// With MPI_THREAD_MULTIPLE several threads of each rank use one created window at once, by all
// kinds of calls, and others of their own. MPI-4.1 section 11.6.
// ranks: 1 2 4
// settings: FOMPI_ADOPT=never
// plain ranks: 1 2

#include "created.h"
#include "threads.h"

enum { THREADS = 3, ROUNDS = 40, WIDE = 200, SLOTS = 64, LONGS = 2 * WIDE + SLOTS };

static MPI_Win common, own[THREADS];

// All threads of all ranks add to the same longs of rank 0, one or many at a time.
static void add(int thread, int round)
{
    long ones[WIDE];
    const long one = 1;
    long before, fetched[WIDE];
    for (int i = 0; i < WIDE; i++)
        ones[i] = 1;
    switch ((thread + round) % 3) {
    case 0:
        OK(MPI_Accumulate(ones, WIDE, MPI_LONG, 0, 0, WIDE, MPI_LONG, MPI_SUM, common));
        break;
    case 1:
        OK(MPI_Get_accumulate(ones, WIDE, MPI_LONG, fetched, WIDE, MPI_LONG, 0, 0, WIDE, MPI_LONG,
                              MPI_SUM, common));
        break;
    case 2:
        OK(MPI_Accumulate(ones, WIDE - 1, MPI_LONG, 0, 1, WIDE - 1, MPI_LONG, MPI_SUM, common));
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, common));
        break;
    }
    OK(MPI_Win_flush(0, common));
}

// A long of this thread at the next rank, by put and get.
static void put_and_get(int thread, int round)
{
    const long value = 1000 * thread + round;
    const int slot = 2 * WIDE + thread * size + rank;
    long got = -1;
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), slot, 1, MPI_LONG, common));
    OK(MPI_Win_flush(next_rank(), common));
    OK(MPI_Get(&got, 1, MPI_LONG, next_rank(), slot, 1, MPI_LONG, common));
    OK(MPI_Win_flush_all(common));
    CHECK_EQ(got, value);
}

// Read, change and write under an exclusive lock of this thread's own window.
static void modify(int thread)
{
    long seen;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, own[thread]));
    OK(MPI_Get(&seen, 1, MPI_LONG, 0, 0, 1, MPI_LONG, own[thread]));
    OK(MPI_Win_flush(0, own[thread]));
    seen++;
    OK(MPI_Put(&seen, 1, MPI_LONG, 0, 0, 1, MPI_LONG, own[thread]));
    OK(MPI_Win_unlock(0, own[thread]));
}

static void *work(void *argument)
{
    const int thread = *(int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        add(thread, round);
        put_and_get(thread, round);
        modify(thread);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long *single[THREADS];
    if (!check_start_threads(&argc, &argv))
        return check_end();
    long *memory = heap_memory(LONGS * sizeof(long));
    common = window_over(memory, LONGS * sizeof(long), sizeof(long));
    for (int t = 0; t < THREADS; t++) {
        single[t] = heap_memory(64);
        own[t] = window_over(single[t], 64, sizeof(long));
    }
    OK(MPI_Win_lock_all(0, common));
    run_numbered_threads(THREADS, work);
    OK(MPI_Win_unlock_all(common));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; rank == 0 && i < WIDE; i++)
        CHECK_EQ(memory[i], THREADS * ROUNDS * size);
    for (int t = 0; t < THREADS; t++) {
        CHECK_EQ(*single[t], rank == 0 ? ROUNDS * size : 0);
        OK(MPI_Win_free(&own[t]));
    }
    OK(MPI_Win_free(&common));
    return check_end();
}
