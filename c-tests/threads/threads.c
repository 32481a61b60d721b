// With MPI_THREAD_MULTIPLE several threads of each rank use one window at once, under one lock_all,
// and others windows of their own. MPI-4.1 section 11.6.
// ranks: 1 2 4

#include "threads.h"

enum { THREADS = 3, ROUNDS = 100 };

static MPI_Win shared, own[THREADS];

static void *work(void *argument)
{
    int thread = *(int *)argument;
    const int64_t one = 1;
    int64_t before, got;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t value = 1000 * thread + i;
        int slot = 16 + thread * size + rank;
        OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, shared));
        OK(MPI_Put(&value, 1, MPI_INT64_T, next_rank(), slot, 1, MPI_INT64_T, shared));
        OK(MPI_Win_flush(next_rank(), shared));
        OK(MPI_Get(&got, 1, MPI_INT64_T, next_rank(), slot, 1, MPI_INT64_T, shared));
        OK(MPI_Win_flush_all(shared));
        CHECK_EQ(got, value);
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, own[thread]));
        OK(MPI_Get(&got, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, own[thread]));
        OK(MPI_Win_flush(0, own[thread]));
        got++;
        OK(MPI_Put(&got, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, own[thread]));
        OK(MPI_Win_unlock(0, own[thread]));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int64_t *bases[THREADS];
    if (!check_start_threads(&argc, &argv))
        return check_end();
    int64_t *base = window_of(8 * 64, 8, &shared);
    for (int t = 0; t < THREADS; t++) {
        bases[t] = window_of(64, 8, &own[t]);
    }
    OK(MPI_Win_lock_all(0, shared));
    run_numbered_threads(THREADS, work);
    OK(MPI_Win_unlock_all(shared));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(rank != 0 || base[0] == THREADS * ROUNDS * size);
    for (int t = 0; t < THREADS; t++) {
        CHECK(rank != 0 || *bases[t] == ROUNDS * size);
        OK(MPI_Win_free(&own[t]));
    }
    OK(MPI_Win_free(&shared));
    return check_end();
}
