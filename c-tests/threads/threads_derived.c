// Several threads use a datatype for the first time at once. MPI-4.1 section 11.6.
// ranks: 1 2

#include "threads.h"

enum { THREADS = 4, ROUNDS = 5000, BLOCKS = 4 };

static MPI_Win win;
static MPI_Datatype type;
static pthread_barrier_t together;

static void *work(void *argument)
{
    const int thread = *(int *)argument;
    int64_t values[2 * BLOCKS] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&together);
        if (thread == 0) {
            OK(MPI_Type_vector(BLOCKS, 1, 2, MPI_INT64_T, &type));
            OK(MPI_Type_commit(&type));
        }
        pthread_barrier_wait(&together);
        for (int again = 0; again < 3; again++)
            OK(MPI_Put(values, 1, type, rank, 2 * BLOCKS * thread, 1, type, win));
        OK(MPI_Win_flush(rank, win));
        pthread_barrier_wait(&together);
        if (thread == 0)
            OK(MPI_Type_free(&type));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (!check_start_threads(&argc, &argv))
        return check_end();
    window_of(8 * 2 * BLOCKS * THREADS, 8, &win);
    CHECK_EQ(pthread_barrier_init(&together, NULL, THREADS), 0);
    OK(MPI_Win_lock_all(0, win));
    run_numbered_threads(THREADS, work);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
