// For programs that want to know whether their ranks are on several nodes, simulated or real.

#ifndef NODES_H
#define NODES_H

#include "check.h"

// scripts/dev/ctests says how many ranks are on each node of a cluster; in simulated nodes the
// setting of the library does.
UNUSED static int is_cluster(void)
{
    return getenv("CHECK_RANKS_PER_NODE") != NULL;
}

// How many ranks, one after the other, are on a node; 0 if all are on one.
UNUSED static int ranks_per_node(void)
{
    const char *count = getenv(is_cluster() ? "CHECK_RANKS_PER_NODE" : "FOMPI_RANKS_PER_NODE");
    return count == NULL ? 0 : atoi(count);
}

// A shared window of longs; an allocated one where the ranks of the communicator share no memory.
UNUSED static void allocate_shared_if_possible(MPI_Aint bytes, MPI_Comm comm, void *base,
                                               MPI_Win *win)
{
    if (is_cluster())
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, comm, base, win));
    else
        OK(MPI_Win_allocate_shared(bytes, sizeof(long), MPI_INFO_NULL, comm, base, win));
}

#endif
