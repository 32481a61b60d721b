// Many threads of each process accumulate many elements at once, on a target that all share and on
// ones of their own: each element is still changed atomically, and none waits for ever for what
// another one holds. MPI-4.1 sections 11.6 and 12.7.1.
// ranks: 2 4
// plain ranks: 2

#include "threads.h"

enum { THREADS = 12, COUNT = 10000, ROUNDS = 3 };

static MPI_Win win;
static double ones[COUNT];
static pthread_barrier_t together;

static void *work(void *argument)
{
    const int number = *(int *)argument;
    static double old[THREADS][COUNT];
    pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Accumulate(ones, COUNT, MPI_DOUBLE, size - 1, 0, COUNT, MPI_DOUBLE, MPI_SUM, win));
        OK(MPI_Get_accumulate(ones, COUNT, MPI_DOUBLE, old[number], COUNT, MPI_DOUBLE,
                              (rank + number) % size, COUNT, COUNT, MPI_DOUBLE, MPI_SUM, win));
        OK(MPI_Win_flush_all(win));
        for (int k = 1; k < COUNT; k++)
            CHECK(old[number][k] >= 0 && old[number][k] < THREADS * ROUNDS * size);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    double sum = 0, all = 0;
    if (!check_start_threads(&argc, &argv))
        return check_end();
    double *base = window_of(2 * COUNT * sizeof(double), sizeof(double), &win);
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    CHECK_EQ(pthread_barrier_init(&together, NULL, THREADS), 0);
    OK(MPI_Win_lock_all(0, win));
    run_numbered_threads(THREADS, work);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(base[i], rank == size - 1 ? THREADS * ROUNDS * size : 0);
        sum += base[COUNT + i];
    }
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(all, (double)THREADS * ROUNDS * size * COUNT);
    OK(MPI_Win_free(&win));
    return check_end();
}
