// For programs with memory handles, which the plain MPI does not have: `has_handles` is 0 there. They are
// weak symbols: NULL where only the plain MPI is there.

#ifndef HANDLES_H
#define HANDLES_H

#include "check.h"

#include "../include/fompi_rma.h"

#pragma weak FOMPI_Mem_expose
#pragma weak FOMPI_Mem_allocate
#pragma weak FOMPI_Mem_pack
#pragma weak FOMPI_Mem_unpack
#pragma weak FOMPI_Mem_query
#pragma weak FOMPI_Mem_withdraw
#pragma weak FOMPI_Mem_release
#pragma weak FOMPI_Mem_put
#pragma weak FOMPI_Mem_get
#pragma weak FOMPI_Mem_accumulate
#pragma weak FOMPI_Mem_fetch_and_op
#pragma weak FOMPI_Mem_compare_and_swap
#pragma weak FOMPI_Xfer
#pragma weak FOMPI_Complete
#pragma weak FOMPI_Complete_collective
#pragma weak FOMPI_Win_dup
#pragma weak FOMPI_Win_from_mem

// Whether the library has them.
UNUSED static int has_handles(void)
{
    return FOMPI_Mem_put != NULL;
}

// A dynamic window whose errors are returned.
UNUSED static MPI_Win dynamic_window(void)
{
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

// Exposes memory at all ranks, and stores handles of the memory of each in `mems`. The own one is that of
// FOMPI_Mem_expose; NULL as `base` allocates.
UNUSED static void share(MPI_Win win, void **base, MPI_Aint bytes, FOMPI_Mem *mems)
{
    char own[FOMPI_MEM_BYTES], *all = malloc((size_t)size * FOMPI_MEM_BYTES);
    if (*base == NULL)
        OK(FOMPI_Mem_allocate(bytes, MPI_INFO_NULL, win, base, &mems[rank]));
    else
        OK(FOMPI_Mem_expose(*base, bytes, MPI_INFO_NULL, win, &mems[rank]));
    OK(FOMPI_Mem_pack(mems[rank], own));
    OK(MPI_Allgather(own, FOMPI_MEM_BYTES, MPI_BYTE, all, FOMPI_MEM_BYTES, MPI_BYTE, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        if (i != rank)
            OK(FOMPI_Mem_unpack(all + (size_t)i * FOMPI_MEM_BYTES, win, &mems[i]));
    free(all);
}

// Ends what `share` has made, when all ranks are done.
UNUSED static void unshare(FOMPI_Mem *mems)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) {
        OK(i == rank ? FOMPI_Mem_withdraw(&mems[i]) : FOMPI_Mem_release(&mems[i]));
        CHECK(mems[i] == FOMPI_MEM_NULL);
    }
}

#endif
