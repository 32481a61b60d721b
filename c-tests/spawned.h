// Windows of all flavours over an intra-communicator, each put to and read once round the ring, and memory
// handles of its dynamic window.

#ifndef SPAWNED_H
#define SPAWNED_H

#include "handles.h"

enum { FLAVORS = 3, LONGS = 16 };

// What one process has of a communicator.
struct ring {
    MPI_Comm comm;
    int me, ranks;
    MPI_Win wins[FLAVORS];
    long *bases[FLAVORS], memory[LONGS], attached[LONGS];
    MPI_Aint there;
    long *allocated, exposed[LONGS];
    FOMPI_Mem own[2], next[2];          // of what is allocated, and of `exposed`
    char packed[2][FOMPI_MEM_BYTES];    // of the next process
};

// Handles of two kinds of memory of each process: of the next one they come from the one before it, which
// packs what it has unpacked.
UNUSED static void ring_handles(struct ring *ring)
{
    const int next = (ring->me + 1) % ring->ranks;
    const int previous = (ring->me + ring->ranks - 1) % ring->ranks;
    const MPI_Aint bytes = LONGS * sizeof(long);
    char own[2][FOMPI_MEM_BYTES], before[2][FOMPI_MEM_BYTES];
    OK(MPI_Win_set_errhandler(ring->wins[2], MPI_ERRORS_RETURN));
    OK(FOMPI_Mem_allocate(bytes, MPI_INFO_NULL, ring->wins[2], &ring->allocated, &ring->own[0]));
    OK(FOMPI_Mem_expose(ring->exposed, bytes, MPI_INFO_NULL, ring->wins[2], &ring->own[1]));
    for (int i = 0; i < 2; i++) {
        FOMPI_Mem passed;
        OK(FOMPI_Mem_pack(ring->own[i], own[i]));
        OK(MPI_Sendrecv(own[i], FOMPI_MEM_BYTES, MPI_BYTE, next, 4, before[i], FOMPI_MEM_BYTES, MPI_BYTE,
                        previous, 4, ring->comm, MPI_STATUS_IGNORE));
        OK(FOMPI_Mem_unpack(before[i], ring->wins[2], &passed));
        OK(FOMPI_Mem_pack(passed, before[i]));
        OK(FOMPI_Mem_release(&passed));
    }
    // Each process has the handles of the one before it; those of the next one come back round the ring.
    for (int step = 0; step < ring->ranks - 2; step++)
        OK(MPI_Sendrecv_replace(before, sizeof before, MPI_BYTE, next, 5, previous, 5, ring->comm,
                                MPI_STATUS_IGNORE));
    memcpy(ring->packed, before, sizeof before);
    for (int i = 0; i < 2; i++)
        OK(FOMPI_Mem_unpack(ring->packed[i], ring->wins[2], &ring->next[i]));
}

// A put, and atomic operations, without an epoch.
UNUSED static void ring_handles_turn(const struct ring *ring, long mark)
{
    const int previous = (ring->me + ring->ranks - 1) % ring->ranks;
    const long value = mark + ring->me, one = 1, expected = value + 1;
    for (int i = 0; i < 2; i++) {
        long found = -1, *memory = i == 0 ? ring->allocated : (long *)ring->exposed;
        const FOMPI_Mem mem = ring->next[i];
        OK(FOMPI_Mem_put(&value, 1, MPI_LONG, mem, 8, FOMPI_REMOTE));
        OK(FOMPI_Mem_fetch_and_op(&one, &found, MPI_LONG, mem, 8, MPI_SUM, FOMPI_BLOCKING));
        CHECK_EQ(found, value);
        OK(FOMPI_Mem_compare_and_swap(&one, &expected, &found, MPI_LONG, mem, 8, FOMPI_BLOCKING));
        CHECK_EQ(found, value + 1);
        OK(FOMPI_Mem_accumulate(&value, 1, MPI_LONG, mem, 8, MPI_SUM, 0));
        OK(FOMPI_Complete_collective(ring->wins[2]));
        CHECK_EQ(memory[1], 1 + mark + previous);
        OK(FOMPI_Mem_get(&found, 1, MPI_LONG, mem, 8, FOMPI_BLOCKING));
        CHECK_EQ(found, value + 1);
        OK(MPI_Barrier(ring->comm));
    }
}

// Withdraws at each process, and sees that the memory of the next one is out of reach.
UNUSED static void ring_handles_end(struct ring *ring)
{
    OK(MPI_Barrier(ring->comm));
    for (int i = 0; i < 2; i++)
        OK(FOMPI_Mem_withdraw(&ring->own[i]));
    OK(MPI_Barrier(ring->comm));
    for (int i = 0; i < 2; i++) {
        long found;
        int code = FOMPI_Mem_get(&found, 1, MPI_LONG, ring->next[i], 8, FOMPI_BLOCKING);
        if (code == MPI_SUCCESS)
            code = FOMPI_Complete(FOMPI_ALL_RANKS, ring->wins[2]);
        EXPECT(code, MPI_ERR_RMA_RANGE);
        OK(FOMPI_Mem_release(&ring->next[i]));
    }
    OK(MPI_Free_mem(ring->allocated));
}

// The windows of two communicators have no handles in common.
UNUSED static void ring_refuses(const struct ring *ring, const struct ring *other)
{
    FOMPI_Mem mem;
    for (int i = 0; i < 2 && has_handles(); i++)
        EXPECT(FOMPI_Mem_unpack(other->packed[i], ring->wins[2], &mem), MPI_ERR_ARG);
}

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
    if (has_handles())
        ring_handles(ring);
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
    if (has_handles())
        ring_handles_turn(ring, mark);
}

UNUSED static void ring_free(struct ring *ring)
{
    if (has_handles())
        ring_handles_end(ring);
    for (int w = 0; w < FLAVORS; w++)
        OK(MPI_Win_free(&ring->wins[w]));
    free(ring);
}

#endif
