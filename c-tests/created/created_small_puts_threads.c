// With MPI_THREAD_MULTIPLE the puts of all threads are complete when one thread has completed them,
// and threads that complete their own meanwhile lose none. MPI-4.1 sections 11.6 and 12.5.4.
// ranks: 1 2 4
// settings: FOMPI_ADOPT=never
// plain ranks: 1 2

#include "created.h"
#include "threads.h"

enum { THREADS = 3, ROUNDS = 30, PUTS = 60 };

static long *memory;
static MPI_Win win, view; // over the same memory: a get of one sends no puts of the other
static pthread_barrier_t all;

static int slot(int origin, int thread, int k) { return (origin * THREADS + thread) * PUTS + k; }

static void put_round(int thread, int round)
{
    for (int k = 0; k < PUTS; k++) {
        long value = 1000L * round + k;
        OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), slot(rank, thread, 7 * k % PUTS), 1, MPI_LONG,
                   win));
        OK(MPI_Win_flush_local(next_rank(), win));
    }
}

static void check_round(int round)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    __sync_synchronize();
    for (int thread = 0; thread < THREADS; thread++)
        for (int k = 0; k < PUTS; k++)
            CHECK_EQ(((volatile long *)memory)[slot(previous_rank(), thread, 7 * k % PUTS)],
                     1000L * round + k);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Threads complete puts to a target each, at the same time, one put or several.
static void own_targets(int thread)
{
    const int target = (rank + 1 + thread) % size;
    for (int k = 0; k < 10 * PUTS; k++) {
        const int puts = 1 + k / 3 % 3, at = slot(rank, thread, 0);
        long got = 0;
        for (int n = 0; n < puts; n++) {
            const long value = 10L * k + n;
            OK(MPI_Put(&value, 1, MPI_LONG, target, at + n, 1, MPI_LONG, win));
            OK(MPI_Win_flush_local(target, win));
        }
        OK(MPI_Win_flush(target, win));
        OK(MPI_Get(&got, 1, MPI_LONG, target, at + puts - 1, 1, MPI_LONG, view));
        OK(MPI_Win_flush(target, view));
        CHECK_EQ(got, 10L * k + puts - 1);
    }
}

static void *work(void *argument)
{
    const int thread = *(int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        put_round(thread, round);
        pthread_barrier_wait(&all);
        if (thread == round % THREADS) {
            OK(MPI_Win_flush(next_rank(), win));
            check_round(round);
        }
        pthread_barrier_wait(&all);
        // Each for itself: some puts are complete, the others when the thread is done.
        for (int k = 0; k < PUTS; k++) {
            long value = -round - k, got = 0;
            const int at = slot(rank, thread, k);
            OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), at, 1, MPI_LONG, win));
            if (k % 5 != thread) {
                OK(MPI_Win_flush_local(next_rank(), win));
                continue;
            }
            OK(MPI_Win_flush(next_rank(), win));
            OK(MPI_Get(&got, 1, MPI_LONG, next_rank(), at, 1, MPI_LONG, win));
            OK(MPI_Win_flush(next_rank(), win));
            CHECK_EQ(got, value);
        }
        OK(MPI_Win_flush_all(win));
    }
    pthread_barrier_wait(&all);
    own_targets(thread);
    return NULL;
}

int main(int argc, char **argv)
{
    if (!check_start_threads(&argc, &argv))
        return check_end();
    const size_t bytes = (size_t)size * THREADS * PUTS * sizeof(long);
    memory = heap_memory(bytes);
    win = window_over(memory, (MPI_Aint)bytes, sizeof(long));
    CHECK_EQ(pthread_barrier_init(&all, NULL, THREADS), 0);
    view = window_over(memory, (MPI_Aint)bytes, sizeof(long));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_lock_all(0, view));
    run_numbered_threads(THREADS, work);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_unlock_all(view));
    OK(MPI_Win_free(&view));
    OK(MPI_Win_free(&win));
    CHECK_EQ(pthread_barrier_destroy(&all), 0);
    return check_end();
}
