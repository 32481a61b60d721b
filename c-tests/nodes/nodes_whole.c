// Two threads of each rank accumulate several elements at two ranks of another node and of their own
// at once, short and long ones, with results and without, many of them before a flush. Each call is
// atomic as a whole: all elements of a result are equal. No addition is lost, and no two calls wait
// for each other. Then some ranks add to all elements, and others to each one by itself. MPI-4.1
// sections 12.7.1 and 11.6.2.
// ranks: 4 8
// plain ranks: 4

#include "threads.h"

enum { SHORT = 4, LONG = 10000, ROUNDS = 30, BURST = 20, THREADS = 2, SINGLES = 50, SINGLE_ROUNDS = 5 };

static MPI_Win win;

static void expect_whole(const int64_t *old, int count)
{
    for (int i = 1; i < count; i++)
        CHECK_EQ(old[i], old[0]);
}

static void *work(void *argument)
{
    const int thread = *(int *)argument;
    int64_t *ones = malloc(LONG * sizeof *ones), *old = malloc(LONG * sizeof *old);
    for (int i = 0; i < LONG; i++)
        ones[i] = 1;
    for (int round = 0; round < ROUNDS; round++) {
        // The two threads of a rank have two targets, which one process of their node may serve.
        int target = (round + rank + thread) % size;
        for (int i = 0; i < BURST; i++)
            OK(MPI_Accumulate(ones, SHORT, MPI_INT64_T, target, 0, SHORT, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Get_accumulate(ones, SHORT, MPI_INT64_T, old, SHORT, MPI_INT64_T, target, 0, SHORT,
                              MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        expect_whole(old, SHORT);
        OK(MPI_Get_accumulate(ones, LONG, MPI_INT64_T, old, LONG, MPI_INT64_T, target, SHORT, LONG,
                              MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Win_flush_local(target, win));
        expect_whole(old, LONG);
    }
    free(ones);
    free(old);
    return NULL;
}

// Ranks with an even number add to all elements of rank 0 at once, the others to one after the other,
// from the first call on: no element loses an addition.
static void add_to_single_elements(const int64_t *base, int64_t before)
{
    int64_t *ones = malloc(LONG * sizeof *ones);
    for (int i = 0; i < LONG; i++)
        ones[i] = 1;
    for (int round = 0; round < SINGLE_ROUNDS; round++) {
        if (rank % 2 == 0) {
            for (int k = 0; k < LONG / SINGLES; k++)
                OK(MPI_Accumulate(ones, SINGLES, MPI_INT64_T, 0, SHORT, SINGLES, MPI_INT64_T, MPI_SUM,
                                  win));
        } else {
            for (int k = 0; k < LONG / SINGLES; k++)
                for (int i = 0; i < SINGLES; i++)
                    OK(MPI_Accumulate(ones, 1, MPI_INT64_T, 0, SHORT + i, 1, MPI_INT64_T, MPI_SUM,
                                      win));
        }
        OK(MPI_Win_flush(0, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int i = 0; i < SINGLES && rank == 0; i++)
        CHECK_EQ(base[SHORT + i], before + (int64_t)size * SINGLE_ROUNDS * (LONG / SINGLES));
    free(ones);
}

int main(int argc, char **argv)
{
    const int threads = check_start_threads(&argc, &argv) ? THREADS : 1;
    int64_t *base = window_of((SHORT + LONG) * sizeof *base, sizeof *base, &win);
    OK(MPI_Win_lock_all(0, win));
    run_numbered_threads(threads, work);
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    expect_whole(base, SHORT);
    expect_whole(base + SHORT, LONG);
    const int64_t mine[2] = {base[0], base[SHORT]}, calls = (int64_t)size * threads * ROUNDS;
    int64_t sums[2];
    OK(MPI_Allreduce(mine, sums, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(sums[0], calls * (BURST + 1));
    CHECK_EQ(sums[1], calls);
    add_to_single_elements(base, mine[1]);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
