// Windows from MPI_BOTTOM on over the whole address space: places at the target are addresses
// there, of memory of any kind, also such that comes later. MPI-4.1 sections 12.2.1 and 5.1.5.
// ranks: 1 2 4

#include "created.h"

enum { COUNT = 100, KINDS = 4 };

static MPI_Win win;

// The address of `memory` on the rank on whose memory this one works.
static MPI_Aint address_of_the_next(void *memory)
{
    MPI_Aint address, theirs;
    OK(MPI_Get_address(memory, &address));
    OK(MPI_Sendrecv(&address, 1, MPI_AINT, previous_rank(), 0, &theirs, 1, MPI_AINT, next_rank(), 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return theirs;
}

static void try(int *memory, int salt)
{
    const MPI_Aint theirs = address_of_the_next(memory);
    int values[COUNT], got[COUNT], before, one = 1;
    for (int i = 0; i < COUNT; i++)
        values[i] = 1000 * salt + 100 * rank + i;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Put(values, COUNT - 1, MPI_INT, next_rank(), MPI_Aint_add(theirs, sizeof(int)),
               COUNT - 1, MPI_INT, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Accumulate(&one, 1, MPI_INT, next_rank(), MPI_Aint_add(theirs, sizeof(int)), 1, MPI_INT,
                      MPI_SUM, win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_INT, next_rank(), theirs, MPI_REPLACE, win));
    OK(MPI_Win_flush(next_rank(), win));
    CHECK_EQ(before, -1);
    OK(MPI_Get(got, COUNT, MPI_INT, next_rank(), theirs, COUNT, MPI_INT, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(got[0], 1);
    for (int i = 1; i < COUNT; i++)
        CHECK_EQ(got[i], values[i - 1] + (i == 1));
    lock_own_memory(win);
    CHECK_EQ(memory[0], 1);
    for (int i = 1; i < COUNT; i++)
        CHECK_EQ(memory[i], 1000 * salt + 100 * previous_rank() + i - 1 + (i == 1));
    unlock_own_memory(win);
}

// Both sides by absolute addresses in one datatype.
static void absolute_type(int *first, int *second)
{
    MPI_Aint places[2], theirs[2] = {address_of_the_next(first), address_of_the_next(second)};
    const int lengths[2] = {2, 3};
    int from[2][3] = {{11 + rank, 12}, {21 + rank, 22, 23}};
    const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Datatype origin, target;
    OK(MPI_Get_address(from[0], &places[0]));
    OK(MPI_Get_address(from[1], &places[1]));
    OK(MPI_Type_create_struct(2, lengths, places, types, &origin));
    OK(MPI_Type_create_struct(2, lengths, theirs, types, &target));
    OK(MPI_Type_commit(&origin));
    OK(MPI_Type_commit(&target));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(MPI_BOTTOM, 1, origin, next_rank(), 0, 1, target, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(first[0], 11 + previous_rank());
    CHECK_EQ(first[1], 12);
    CHECK_EQ(second[0], 21 + previous_rank());
    CHECK_EQ(second[2], 23);
    OK(MPI_Type_free(&origin));
    OK(MPI_Type_free(&target));
}

int main(int argc, char **argv)
{
    static int fixed[COUNT];
    int stack[COUNT];
    check_start(&argc, &argv);
    // All that a process can have on the 64-bit machines of today.
    win = window_over(MPI_BOTTOM, (MPI_Aint)1 << 47, 1);
    int *kinds[KINDS] = {heap_memory(sizeof stack), fixed, stack, mpi_memory(sizeof stack)};
    for (int i = 0; i < KINDS; i++) {
        memset(kinds[i], 0xff, sizeof stack);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        try(kinds[i], i + 1);
    }
    absolute_type(kinds[1], kinds[0]);
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(kinds[3]));
    return check_end();
}
