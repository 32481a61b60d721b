// MPI_THREAD_MULTIPLE: the threads of a rank lock different targets of one window at once, shared
// and exclusive, and windows of their own, and every count is exact.

#include "robust.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 200 };

static MPI_Win one, own[THREADS];
static int64_t *base, *bases[THREADS];

// Adds 1 under an exclusive lock of `target`.
static void add(MPI_Win win, int target, int at)
{
    int64_t value;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Get(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(target, win));
    value++;
    OK(MPI_Put(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win));
    OK(MPI_Win_unlock(target, win));
}

// Each thread has targets of its own in turn: a process may not lock a target twice.
static void *work(void *argument)
{
    int thread = *(int *)argument;
    int64_t unit = 1, before;
    for (int i = 0; i < ROUNDS; i++) {
        int target = thread + THREADS * (i % (size / THREADS));
        add(one, target, 0);
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, one));
        OK(MPI_Fetch_and_op(&unit, &before, MPI_INT64_T, target, 1, MPI_SUM, one));
        OK(MPI_Win_flush_local(target, one));
        OK(MPI_Accumulate(&unit, 1, MPI_INT64_T, target, 2, 1, MPI_INT64_T, MPI_SUM, one));
        OK(MPI_Win_unlock(target, one));
        add(own[thread], i % size, 0);
        if (i % 50 == 0) {
            OK(MPI_Win_lock_all(0, own[thread]));
            OK(MPI_Fetch_and_op(&unit, &before, MPI_INT64_T, 0, 1, MPI_SUM, own[thread]));
            OK(MPI_Win_unlock_all(own[thread]));
        }
    }
    return NULL;
}

static void sums_to(int64_t *word, int64_t want)
{
    int64_t sum;
    MPI_Allreduce(word, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == want);
}

int main(int argc, char **argv)
{
    int provided, numbers[THREADS];
    pthread_t threads[THREADS];
    alarm(60);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided < MPI_THREAD_MULTIPLE) {
        printf("this MPI has no MPI_THREAD_MULTIPLE\n");
        return MPI_Finalize();
    }
    CHECK(size % THREADS == 0);
    base = window_of(8, &one);
    for (int t = 0; t < THREADS; t++) {
        numbers[t] = t;
        bases[t] = window_of(8, &own[t]);
    }
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&threads[t], NULL, work, &numbers[t]) == 0);
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_join(threads[t], NULL) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int at = 0; at < 3; at++)
        sums_to(&base[at], (int64_t)THREADS * ROUNDS * size);
    for (int t = 0; t < THREADS; t++) {
        sums_to(&bases[t][0], (int64_t)ROUNDS * size);
        sums_to(&bases[t][1], (int64_t)(ROUNDS / 50) * size);
        OK(MPI_Win_free(&own[t]));
    }
    OK(MPI_Win_free(&one));
    return MPI_Finalize();
}
