// With MPI_THREAD_MULTIPLE the threads of each rank attach and detach memory of one window and
// access that of other ranks, all at once. MPI-4.1 sections 11.6 and 12.2.4.
// ranks: 1 2 4

#include "dynamic.h"
#include "threads.h"

enum { THREADS = 3, ROUNDS = 25, COUNT = 256 };

static MPI_Win win;
static int64_t counter;
static MPI_Aint counters[RANKS_MAX];

// The thread of the same number on the next rank attaches memory, and this one accesses it.
static void one_round(int thread, int round, int64_t *memory)
{
    const int64_t one = 1, mark = 1000000 * thread + 1000 * round;
    int64_t values[COUNT], got[COUNT], before;
    MPI_Aint mine = address_of(memory), theirs = 0;
    char done = 1;
    OK(MPI_Win_attach(win, memory, COUNT * sizeof *memory));
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, previous_rank(), thread, &theirs, 1, MPI_AINT,
                    next_rank(), thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++)
        values[i] = mark + 10 * rank + i;
    OK(MPI_Put(values, COUNT, MPI_INT64_T, next_rank(), theirs, COUNT, MPI_INT64_T, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Get(got, COUNT, MPI_INT64_T, next_rank(), theirs, COUNT, MPI_INT64_T, win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, counters[0], MPI_SUM, win));
    OK(MPI_Win_flush_all(win));
    CHECK(memcmp(got, values, sizeof got) == 0);
    OK(MPI_Sendrecv_replace(&done, 1, MPI_CHAR, next_rank(), THREADS + thread, previous_rank(),
                            THREADS + thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Win_sync(win));
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(memory[i], mark + 10 * previous_rank() + i);
    OK(MPI_Win_detach(win, memory));
}

static void *work(void *argument)
{
    const int thread = *(int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t *memory = malloc((size_t)(COUNT + round) * sizeof *memory);
        CHECK(memory != NULL);
        one_round(thread, round, memory);
        free(memory);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (!check_start_threads(&argc, &argv))
        return check_end();
    win = dynamic_window();
    OK(MPI_Win_attach(win, &counter, sizeof counter));
    exchange(&counter, counters);
    OK(MPI_Win_lock_all(0, win));
    run_numbered_threads(THREADS, work);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(rank != 0 || counter == THREADS * ROUNDS * size);
    OK(MPI_Win_detach(win, &counter));
    OK(MPI_Win_free(&win));
    return check_end();
}
