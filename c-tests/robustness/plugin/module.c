// A module that is linked with libfompi and loaded at run time (dlopen). It makes windows; the
// program that loads it may have an MPI of its own by then (host.c), or none (loader.c).

#include <mpi.h>
#include <stddef.h>

void module_begin(void);
MPI_Win module_window(int **base);
int module_works(void);

// Starts MPI, for a program that has none.
void module_begin(void)
{
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
}

// A window of 64 bytes per rank over MPI_COMM_WORLD. (In windows of 4, MPICH 4.0.2 loses puts.)
MPI_Win module_window(int **base)
{
    MPI_Win win;
    MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, base, &win);
    return win;
}

// Whether windows work that are made and used here alone.
int module_works(void)
{
    int rank, size, *base, keyval, found, *value;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win win = module_window(&base);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL);
    MPI_Win_set_attr(win, keyval, &rank);
    MPI_Win_get_attr(win, keyval, &value, &found);
    *base = -1;
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    int works = *base == (rank + size - 1) % size && found && value == &rank;
    MPI_Win_free_keyval(&keyval);
    MPI_Win_free(&win);
    return works;
}
