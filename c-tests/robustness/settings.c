// What the FOMPI_ variables may not change: an allocated window works, and so does one over memory
// of the program. (What they refuse where memory cannot be reached is in denied.c.)

#include "robust.h"

int main(int argc, char **argv)
{
    MPI_Win win;
    int64_t memory[4] = {0};
    start(30, &argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int64_t *base = window_of(4, &win), value = rank + 1;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, win));
    OK(MPI_Win_fence(0, win));
    CHECK(base[0] == (rank + size - 1) % size + 1);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_free(&win));
    return MPI_Finalize();
}
