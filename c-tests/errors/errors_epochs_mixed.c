// Calls that do not go with the epoch that is open, or with none: MPI_ERR_RMA_SYNC, and the epoch
// stays as it was. MPI-4.1 sections 12.2.5, 12.5 and 12.6.2.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

static MPI_Win win;
static long value = 7;

static void without_an_epoch(void)
{
    int flag = 0;
    EXPECT(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    EXPECT(MPI_Put(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win), MPI_ERR_RMA_SYNC);
}

static void inside_a_passive_epoch(void)
{
    MPI_Win kept = win;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    EXPECT(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_free(&kept), MPI_ERR_RMA_SYNC);
    CHECK(kept == win);
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Win_lock_all(0, win));
    EXPECT(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_free(&kept), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_start(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_unlock_all(win));
}

static void inside_an_active_epoch(MPI_Group self)
{
    MPI_Win kept = win;
    OK(MPI_Win_post(self, 0, win));
    EXPECT(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_free(&kept), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_start(self, 0, win));
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_flush(rank, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_unlock(rank, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Put(&value, 1, MPI_LONG, rank, 1, 1, MPI_LONG, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 2, 1, MPI_LONG, win));
    EXPECT(MPI_Win_post(self, 0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_start(self, 0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

int main(int argc, char **argv)
{
    MPI_Group world, self;
    check_start_within(20, &argc, &argv);
    long *base = returning_window_of(64, sizeof(long), &win);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &rank, &self));
    without_an_epoch();
    inside_a_passive_epoch();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    inside_an_active_epoch(self);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(base[i], 7);
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&world));
    OK(MPI_Win_free(&win));
    return check_end();
}
