// For programs that want to know whether their ranks are on several nodes, simulated or real.

#ifndef NODES_H
#define NODES_H

#include "check.h"

// How many ranks, one after the other, are on a node; 0 if all are on one. What starts the
// program says it where the nodes are those of scripts/dev/cluster; otherwise the setting of the
// library makes them.
UNUSED static int ranks_per_node(void)
{
    const char *count = getenv("CHECK_RANKS_PER_NODE");
    if (count == NULL)
        count = getenv("FOMPI_RANKS_PER_NODE");
    return count == NULL ? 0 : atoi(count);
}

// A shared window of longs; an allocated one where the ranks are on several nodes.
UNUSED static void allocate_shared_if_possible(MPI_Aint bytes, MPI_Comm comm, void *base,
                                               MPI_Win *win)
{
    if (ranks_per_node() > 0)
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, comm, base, win));
    else
        OK(MPI_Win_allocate_shared(bytes, sizeof(long), MPI_INFO_NULL, comm, base, win));
}

#endif
