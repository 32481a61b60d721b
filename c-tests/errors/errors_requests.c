// Calls with a request are for passive target epochs alone, and need a place for the request. Where
// one of these is missing nothing moves. MPI-4.1 sections 12.3.5 and 12.6.2.
// ranks: 1 2 4
// settings: FOMPI_STRICT=1

#include "check.h"

static MPI_Win win;
static long *base;
static long value = 7, got = -1;

// Each call fails with one of these classes.
static void refused(int target, MPI_Request *request, int class, int other)
{
    EXPECT(MPI_Rput(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win, request), class, other);
    EXPECT(MPI_Rget(&got, 1, MPI_LONG, target, 0, 1, MPI_LONG, win, request), class, other);
    EXPECT(MPI_Raccumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win, request),
           class, other);
    EXPECT(MPI_Rget_accumulate(&value, 1, MPI_LONG, &got, 1, MPI_LONG, target, 0, 1, MPI_LONG,
                               MPI_SUM, win, request), class, other);
}

static void in_active_epochs(void)
{
    MPI_Group world, self;
    MPI_Request request;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &rank, &self));
    OK(MPI_Win_fence(0, win));
    refused(next_rank(), &request, MPI_ERR_RMA_SYNC, MPI_ERR_RMA_SYNC);
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 1, 1, MPI_LONG, win));
    refused(next_rank(), &request, MPI_ERR_RMA_SYNC, MPI_ERR_RMA_SYNC);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    refused(next_rank(), &request, MPI_ERR_RMA_SYNC, MPI_ERR_RMA_SYNC);
    OK(MPI_Win_post(self, 0, win));
    OK(MPI_Win_start(self, 0, win));
    refused(rank, &request, MPI_ERR_RMA_SYNC, MPI_ERR_RMA_SYNC);
    OK(MPI_Put(&value, 1, MPI_LONG, rank, 2, 1, MPI_LONG, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&world));
}

int main(int argc, char **argv)
{
    MPI_Request request;
    check_start(&argc, &argv);
    base = returning_window_of(64, sizeof(long), &win);
    in_active_epochs();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Rput(&value, 1, MPI_LONG, next_rank(), 3, 1, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    refused(next_rank(), NULL, MPI_ERR_ARG, MPI_ERR_REQUEST);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(got, -1);
    CHECK(base[0] == 0 && base[1] == 7 && base[2] == 7);
    OK(MPI_Win_free(&win));
    return check_end();
}
