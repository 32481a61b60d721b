// Memory is attached to a dynamic window, reached by its address, and detached again.
// MPI-4.1 section 12.2.4.
// ranks: 1 2 4

#include "check.h"

enum { COUNT = 50 };

static void put_into_the_next(MPI_Win win, int *memory, int mark)
{
    MPI_Aint address, theirs;
    int values[COUNT];
    OK(MPI_Get_address(memory, &address));
    OK(MPI_Sendrecv(&address, 1, MPI_AINT, previous_rank(), 0, &theirs, 1, MPI_AINT, next_rank(), 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++)
        values[i] = mark + 100 * rank + i;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(values, COUNT - 1, MPI_INT, next_rank(), MPI_Aint_add(theirs, sizeof(int)),
               COUNT - 1, MPI_INT, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int i = 0; i < COUNT - 1; i++)
        CHECK_EQ(memory[i + 1], mark + 100 * previous_rank() + i);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    int *first, *second, flag, *flavor;
    check_start(&argc, &argv);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
    CHECK(flag && *flavor == MPI_WIN_FLAVOR_DYNAMIC);
    first = calloc(COUNT, sizeof *first);
    second = calloc(COUNT, sizeof *second);
    OK(MPI_Win_attach(win, first, COUNT * sizeof *first));
    OK(MPI_Win_attach(win, second, COUNT * sizeof *second));
    put_into_the_next(win, first, 10000);
    put_into_the_next(win, second, 20000);
    OK(MPI_Win_detach(win, first));
    put_into_the_next(win, second, 30000);
    OK(MPI_Win_detach(win, second));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    free(first);
    free(second);
    return check_end();
}
