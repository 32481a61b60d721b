// What the tests of dynamic windows share: making one, and telling the others where memory is.

#ifndef DYNAMIC_H
#define DYNAMIC_H

#include "check.h"

enum { RANKS_MAX = 64 };

// A dynamic window over MPI_COMM_WORLD, whose errors return.
UNUSED static MPI_Win dynamic_window(void)
{
    MPI_Win win = MPI_WIN_NULL;
    CHECK(size <= RANKS_MAX);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

// What the displacement in a dynamic window is, on every rank.
UNUSED static MPI_Aint address_of(const volatile void *place)
{
    MPI_Aint address = 0;
    OK(MPI_Get_address((const void *)place, &address));
    return address;
}

// Tells all ranks where this one has its place, and learns where they have theirs. What each did
// before, such as attaching the place, has happened when it returns.
UNUSED static void exchange(const volatile void *place, MPI_Aint *places)
{
    MPI_Aint mine = address_of(place);
    OK(MPI_Allgather(&mine, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD));
}

// Within a lock_all epoch: what any rank did before it comes here can be loaded by all after it.
UNUSED static void settle(MPI_Win win)
{
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
}

#endif
