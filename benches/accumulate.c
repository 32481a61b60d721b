// What a sum of 1,024 doubles into another rank costs, with lock_all and under an exclusive lock.
// Ones are added: a sum of zeros changes nothing, and libfompi does not store what does not change.
// usage: two ranks

#include <mpi.h>
#include <stdio.h>

enum { ELEMENTS = 1024, CALLS = 20000, ROUNDS = 3 };

static double nanoseconds_per_call(const double *ones, MPI_Win win)
{
    double start = MPI_Wtime();
    for (int i = 0; i < CALLS; i++) {
        MPI_Accumulate(ones, ELEMENTS, MPI_DOUBLE, 1, 0, ELEMENTS, MPI_DOUBLE, MPI_SUM, win);
        MPI_Win_flush(1, win);
    }
    return (MPI_Wtime() - start) / CALLS * 1e9;
}

int main(int argc, char **argv)
{
    static double ones[ELEMENTS];
    double *base;
    MPI_Win win;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(sizeof ones, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    for (int i = 0; i < ELEMENTS; i++) {
        ones[i] = 1;
        base[i] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; rank == 0 && round < ROUNDS; round++) {
        MPI_Win_lock_all(0, win);
        printf("lock_all  %8.0f ns\n", nanoseconds_per_call(ones, win));
        MPI_Win_unlock_all(win);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        printf("exclusive %8.0f ns\n", nanoseconds_per_call(ones, win));
        MPI_Win_unlock(1, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
