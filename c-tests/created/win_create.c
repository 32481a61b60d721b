// A window over memory of the user's own works with every kind of synchronisation and call.
// MPI-4.1 section 12.2.1.
// ranks: 1 2 4

#include "check.h"

enum { COUNT = 100 };

static void fence_puts(MPI_Win win, const long *memory)
{
    long values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = 1000 * rank + i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(memory[i], 1000 * previous_rank() + i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void locks_count(MPI_Win win, long *memory)
{
    const long one = 1;
    long before;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    memory[3] = 0;
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 10; i++) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 3, MPI_SUM, win));
        OK(MPI_Win_unlock(0, win));
        CHECK(before >= i && before < 10 * size);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        CHECK_EQ(memory[3], 10 * size);
        OK(MPI_Win_unlock(0, win));
    }
}

static void a_request_completes(MPI_Win win)
{
    MPI_Request request;
    long got = -1;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Rget(&got, 1, MPI_LONG, 0, 3, 1, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(got, 10 * size);
    OK(MPI_Win_unlock_all(win));
}

int main(int argc, char **argv)
{
    static long memory[COUNT];
    MPI_Win win;
    MPI_Aint *bytes;
    int flag, *flavor;
    check_start(&argc, &argv);
    OK(MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    fence_puts(win, memory);
    locks_count(win, memory);
    a_request_completes(win);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag));
    CHECK(flag && *bytes == sizeof memory);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
    CHECK(flag && *flavor == MPI_WIN_FLAVOR_CREATE);
    OK(MPI_Win_free(&win));
    return check_end();
}
