// A program as somebody else writes it, linked with an installed libfompi in several ways by
// tests/test_install.py: puts once round the ring. Prints what each rank got.

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Win win;
    int *base, rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    printf("rank %d got %d\n", rank, *base);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
