// Windows of all flavours over an intra-communicator, each put to and read once round the ring.

#ifndef SPAWNED_H
#define SPAWNED_H

#include "check.h"

enum { FLAVORS = 3, LONGS = 16 };

// What one process has of a communicator.
struct ring {
    MPI_Comm comm;
    int me, ranks;
    MPI_Win wins[FLAVORS];
    long *bases[FLAVORS], memory[LONGS], attached[LONGS];
    MPI_Aint there;
};

UNUSED static struct ring *ring_of(MPI_Comm comm)
{
    struct ring *ring = calloc(1, sizeof *ring);
    const MPI_Aint bytes = LONGS * sizeof(long);
    MPI_Aint here;
    CHECK(ring != NULL);
    ring->comm = comm;
    OK(MPI_Comm_rank(comm, &ring->me));
    OK(MPI_Comm_size(comm, &ring->ranks));
    OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, comm, &ring->bases[0], &ring->wins[0]));
    OK(MPI_Win_create(ring->memory, bytes, sizeof(long), MPI_INFO_NULL, comm, &ring->wins[1]));
    ring->bases[1] = ring->memory;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &ring->wins[2]));
    OK(MPI_Win_attach(ring->wins[2], ring->attached, bytes));
    ring->bases[2] = ring->attached;
    OK(MPI_Get_address(ring->attached, &here));
    OK(MPI_Sendrecv(&here, 1, MPI_AINT, (ring->me + ring->ranks - 1) % ring->ranks, 3, &ring->there,
                    1, MPI_AINT, (ring->me + 1) % ring->ranks, 3, comm, MPI_STATUS_IGNORE));
    return ring;
}

// A put by fences, and an accumulate under a lock.
UNUSED static void ring_turn(const struct ring *ring, long mark)
{
    const int next = (ring->me + 1) % ring->ranks;
    const int previous = (ring->me + ring->ranks - 1) % ring->ranks;
    for (int w = 0; w < FLAVORS; w++) {
        const MPI_Aint disp = w == 2 ? ring->there : 0;
        const long value = mark + ring->me;
        MPI_Win win = ring->wins[w];
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next, disp, 1, MPI_LONG, win));
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        CHECK_EQ(ring->bases[w][0], mark + previous);
        OK(MPI_Barrier(ring->comm));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
        OK(MPI_Accumulate(&value, 1, MPI_LONG, next, disp, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Win_unlock(next, win));
        OK(MPI_Barrier(ring->comm));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, ring->me, 0, win));
        CHECK_EQ(ring->bases[w][0], 2 * (mark + previous));
        OK(MPI_Win_unlock(ring->me, win));
        OK(MPI_Barrier(ring->comm));
    }
}

UNUSED static void ring_free(struct ring *ring)
{
    for (int w = 0; w < FLAVORS; w++)
        OK(MPI_Win_free(&ring->wins[w]));
    free(ring);
}

#endif
