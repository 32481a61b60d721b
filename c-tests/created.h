// What the tests of windows over the program's own memory share.

#ifndef CREATED_H
#define CREATED_H

#include "check.h"

// Whether the library is preloaded: for what it promises beyond the standard, and for what takes
// the MPIs alone too long.
UNUSED static int library_is_here(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "fompi") != NULL;
}

// A window of MPI_Win_create over MPI_COMM_WORLD.
UNUSED static MPI_Win window_over(void *base, MPI_Aint bytes, int disp_unit)
{
    MPI_Win win;
    OK(MPI_Win_create(base, bytes, disp_unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    return win;
}

// The same, whose errors return instead of ending the job.
UNUSED static MPI_Win returning_window_over(void *base, MPI_Aint bytes, int disp_unit)
{
    MPI_Win win = window_over(base, bytes, disp_unit);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

// Zeroed memory of the heap at a multiple of 64 bytes, never given back. The ranks have it at
// different distances from what they allocated before, so that an address of one is seldom right
// for another.
UNUSED static void *heap_memory(size_t bytes)
{
    void *memory = NULL;
    if (malloc(100 + 4096 * (size_t)rank) == NULL || posix_memalign(&memory, 64, bytes) != 0)
        check_failed(__FILE__, __LINE__, "no memory");
    return memset(memory, 0, bytes);
}

// The same from MPI_Alloc_mem. Inlined, it makes gcc 12 warn of a pointer to a local that is none.
UNUSED __attribute__((noinline)) static void *mpi_memory(size_t bytes)
{
    void *memory = NULL;
    OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory));
    return memset(memory, 0, bytes);
}

// The target's memory is read between the locks of its owner: every rank calls this after the
// operations of all ranks are complete.
UNUSED static void lock_own_memory(MPI_Win win)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
}

UNUSED static void unlock_own_memory(MPI_Win win)
{
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

#endif
