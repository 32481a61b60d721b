// Calls what libfompi has and the MPI lacks. Linked behind the MPI, this is the only kind of call
// that reaches libfompi; tests/test_install.py checks its output.

#include <mpi.h>
#include <fompi.h>
#include <stdio.h>

int MPI_Win_toint(MPI_Win win);

int main(int argc, char **argv)
{
    MPI_Win win;
    int *base;
    MPI_Init(&argc, &argv);
    printf("libfompi %s for libfompi %s\n", fompi_version(), FOMPI_VERSION);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (MPI_Win_toint(win) == MPI_Win_toint(MPI_WIN_NULL))
        printf("a window is null\n");
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
