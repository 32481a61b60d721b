// Calls with a request between fences, and between a start and its complete, are wrong, and every MPI
// carries them out: so does the library, unless FOMPI_STRICT is set. They begin the epoch of a fence
// like other operations. MPI-4.1 section 12.3.5, docs/decisions/0016.
// ranks: 1 2 4

#include "check.h"

static MPI_Win win;
static long *base;

// One of each to `target`; slot 0 is put, slot 1 is got, slots 2 and 3 are added to.
static void transfers(int target)
{
    static long put, got, old, add;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    put = 100 + rank, got = old = -1, add = 10;
    OK(MPI_Rput(&put, 1, MPI_LONG, target, 0, 1, MPI_LONG, win, &requests[0]));
    OK(MPI_Rget(&got, 1, MPI_LONG, target, 1, 1, MPI_LONG, win, &requests[1]));
    OK(MPI_Raccumulate(&add, 1, MPI_LONG, target, 2, 1, MPI_LONG, MPI_SUM, win, &requests[2]));
    OK(MPI_Rget_accumulate(&add, 1, MPI_LONG, &old, 1, MPI_LONG, target, 3, 1, MPI_LONG, MPI_SUM,
                           win, &requests[3]));
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    CHECK_EQ(got, 1000 + target);
    OK(MPI_Waitall(4, requests, statuses));
    CHECK_EQ(old, 3);
}

static void begin(void)
{
    base[0] = 0, base[1] = 1000 + rank, base[2] = 2, base[3] = 3;
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void arrived(void)
{
    CHECK_EQ(base[0], 100 + previous_rank());
    CHECK_EQ(base[2], 12);
    CHECK_EQ(base[3], 13);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Group world, next, previous;
    check_start(&argc, &argv);
    base = returning_window_of(64, sizeof(long), &win);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, (int[]){next_rank()}, &next));
    OK(MPI_Group_incl(world, 1, (int[]){previous_rank()}, &previous));
    for (int turn = 0; turn < 3; turn++) {
        begin();
        OK(MPI_Win_fence(0, win));
        transfers(next_rank());
        EXPECT(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC); // the fence has begun an epoch
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        arrived();
        begin();
        OK(MPI_Win_post(previous, 0, win));
        OK(MPI_Win_start(next, 0, win));
        transfers(next_rank());
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        arrived();
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&next));
    OK(MPI_Group_free(&previous));
    OK(MPI_Win_free(&win));
    return check_end();
}
