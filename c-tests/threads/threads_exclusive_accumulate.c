// Threads of one process accumulate into the same elements under one exclusive lock: each element
// is still changed atomically, in calls of many elements and of few. MPI-4.1 sections 11.6 and
// 12.7.1.
// ranks: 1 2

#include "nodes.h"
#include "threads.h"

enum { THREADS = 4, MANY = 32, FEW = 4 };

static MPI_Win win;
static int rounds = 50000;
static pthread_barrier_t together;

static void *work(void *argument)
{
    const int count = *(int *)argument;
    int64_t ones[MANY];
    for (int i = 0; i < MANY; i++)
        ones[i] = 1;
    pthread_barrier_wait(&together);
    for (int i = 0; i < rounds; i++)
        OK(MPI_Accumulate(ones, count, MPI_INT64_T, 0, 0, count, MPI_INT64_T, MPI_SUM, win));
    return NULL;
}

int main(int argc, char **argv)
{
    int counts[THREADS];
    if (!check_start_threads(&argc, &argv))
        return check_end();
    if (ranks_per_node() > 0)
        rounds = 1000; // each call takes the lock of the target over the device then
    int64_t *base = window_of(8 * MANY, 8, &win);
    CHECK_EQ(pthread_barrier_init(&together, NULL, THREADS), 0);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    for (int t = 0; t < THREADS; t++)
        counts[t] = t == 0 ? FEW : MANY;
    run_threads(THREADS, work, counts);
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        for (int i = 0; i < MANY; i++)
            CHECK_EQ(base[i], (i < FEW ? THREADS : THREADS - 1) * rounds * size);
    OK(MPI_Win_free(&win));
    return check_end();
}
