// Many threads of each process accumulate many elements at once, among them integers, every second
// one not aligned: the thread that holds what the others wait for does not wait for what they hold.
// MPI-4.1 sections 11.6 and 12.7.1.
// ranks: 2
// plain ranks: 2

#include "threads.h"

enum { THREADS = 12, COUNT = 10000, PAIRS = 2000, ROUNDS = 20, SECOND = 12, STRIDE = 24 };

static MPI_Win win;
static MPI_Datatype pair_type;
static double ones[COUNT];
static int64_t integers[2 * PAIRS];
static pthread_barrier_t together;

static void *work(void *argument)
{
    const int is_mixed = *(int *)argument == 0;
    pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS; i++)
        if (is_mixed)
            OK(MPI_Accumulate(integers, 2 * PAIRS, MPI_INT64_T, 0, 0, PAIRS, pair_type, MPI_SUM,
                              win));
        else
            OK(MPI_Accumulate(ones, COUNT, MPI_DOUBLE, 0, PAIRS * STRIDE, COUNT, MPI_DOUBLE,
                              MPI_SUM, win));
    return NULL;
}

static void make_type(void)
{
    const MPI_Aint at[] = {0, SECOND};
    MPI_Datatype two;
    OK(MPI_Type_create_hindexed_block(2, 1, at, MPI_INT64_T, &two));
    OK(MPI_Type_create_resized(two, 0, STRIDE, &pair_type));
    OK(MPI_Type_commit(&pair_type));
    OK(MPI_Type_free(&two));
}

static void check_sums(const char *base)
{
    for (int i = 0; i < 2 * PAIRS; i++) {
        int64_t sum;
        memcpy(&sum, base + i / 2 * STRIDE + i % 2 * SECOND, sizeof sum);
        CHECK_EQ(sum, ROUNDS * size);
    }
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(((const double *)(base + PAIRS * STRIDE))[i], (THREADS - 1) * ROUNDS * size);
}

int main(int argc, char **argv)
{
    if (!check_start_threads(&argc, &argv))
        return check_end();
    make_type();
    const char *base = window_of(PAIRS * STRIDE + sizeof ones, 1, &win);
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    for (int i = 0; i < 2 * PAIRS; i++)
        integers[i] = 1;
    CHECK_EQ(pthread_barrier_init(&together, NULL, THREADS), 0);
    OK(MPI_Win_lock_all(0, win));
    run_numbered_threads(THREADS, work);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        check_sums(base);
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Win_free(&win));
    OK(MPI_Type_free(&pair_type));
    return check_end();
}
