// Windows over the memory of other windows, which exist at the same time: an allocated window, the
// parts of a shared one, a window over the memory of MPI_Alloc_mem. MPI-4.1 section 12.2.1.
// ranks: 1 2 3 4
// between nodes: shared windows are left to the host MPI

#include "every_call.h"

static void shared_parts(void)
{
    MPI_Win win;
    MPI_Aint bytes;
    long *memory, *part;
    int unit;
    OK(MPI_Win_allocate_shared(TOTAL * sizeof(long), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                               &win));
    try("the own part of a shared window", memory);
    OK(MPI_Win_shared_query(win, previous_rank(), &bytes, &unit, &part));
    try("the part of another rank in a shared window", part);
    OK(MPI_Win_free(&win));
}

// The first window still works, and sees what came through the second one.
static void beside_each_other(MPI_Win win, long *memory)
{
    const long one = 1;
    long got = -1;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, next_rank(), GUARD, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Get(&got, 1, MPI_LONG, next_rank(), GUARD + 1, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(got, result(10000 * (rank + 1), 1));
    lock_own_memory(win);
    CHECK_EQ(memory[GUARD], result(10000 * (previous_rank() + 1), 0) + 1);
    unlock_own_memory(win);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    long *memory;
    check_start(&argc, &argv);
    OK(MPI_Win_allocate(TOTAL * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                        &memory, &win));
    try("an allocated window", memory);
    beside_each_other(win, memory);
    OK(MPI_Win_free(&win));
    shared_parts();
    memory = mpi_memory(TOTAL * sizeof(long));
    win = window_over(memory, TOTAL * sizeof(long), sizeof(long));
    try("a window of MPI_Alloc_mem", memory);
    beside_each_other(win, memory);
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(memory));
    return check_end();
}
