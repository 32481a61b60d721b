// What each rank is told where ranks differ: it prints the error of its first window. With an
// argument, rank 1 makes the window and frees it that many seconds later.

#include "robust.h"

int main(int argc, char **argv)
{
    MPI_Win win = MPI_WIN_NULL;
    int64_t *base;
    char text[MPI_MAX_ERROR_STRING];
    int length, late;
    start(60, &argc, &argv);
    late = argc > 1 && rank == 1 ? atoi(argv[1]) : 0;
    if (getenv("FATAL") == NULL)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    sleep((unsigned)late);
    int code = MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (code == MPI_SUCCESS) {
        sleep((unsigned)late);
        OK(MPI_Win_free(&win));
        return MPI_Finalize();
    }
    MPI_Error_string(code, text, &length);
    printf("rank %d: %s\n", rank, text);
    fflush(stdout);
    return MPI_Finalize();
}
