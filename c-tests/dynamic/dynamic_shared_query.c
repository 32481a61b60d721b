// There may be many regions in a dynamic window, so that MPI_Win_shared_query cannot be asked of
// one: MPI_ERR_RMA_FLAVOR, whichever rank and whatever is attached. MPI-4.1 section 12.2.3.
// ranks: 1 2 4

#include "dynamic.h"

static void refused(MPI_Win win, int of_rank)
{
    MPI_Aint bytes;
    int disp_unit;
    void *base;
    EXPECT(MPI_Win_shared_query(win, of_rank, &bytes, &disp_unit, &base), MPI_ERR_RMA_FLAVOR);
}

int main(int argc, char **argv)
{
    void *memory;
    check_start(&argc, &argv);
    MPI_Win win = dynamic_window();
    refused(win, rank);
    refused(win, next_rank());
    refused(win, MPI_PROC_NULL);
    OK(MPI_Alloc_mem(4096, MPI_INFO_NULL, &memory));
    OK(MPI_Win_attach(win, memory, 4096));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    refused(win, rank);
    refused(win, next_rank());
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Free_mem(memory));
    OK(MPI_Win_free(&win));
    return check_end();
}
