/* A library in front of libfompi whose functions are broken on rank 1, one after another as BROKEN
 * says: 1 a compare-and-swap that swaps nothing, 2 a flush that does not return, 3 a flush that
 * ends the process. tests/test_selftest.py preloads it. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

static int is_rank_1(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 1;
}

#if BROKEN == 1
int MPI_Compare_and_swap(const void *new_value, const void *old_value, void *found,
                         MPI_Datatype type, int target, MPI_Aint displacement, MPI_Win win)
{
    if (!is_rank_1())
        return PMPI_Compare_and_swap(new_value, old_value, found, type, target, displacement, win);
    *(long *)found = *(const long *)old_value;
    return MPI_SUCCESS;
}
#else
int MPI_Win_flush_local_all(MPI_Win win)
{
    if (is_rank_1() && BROKEN == 3)
        abort();
    while (is_rank_1())
        pause();
    return PMPI_Win_flush_local_all(win);
}
#endif
