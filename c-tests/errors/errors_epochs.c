// Calls that no epoch allows return MPI_ERR_RMA_SYNC, and the window works afterwards.
// MPI-4.1 sections 12.5 and 12.6.2.
// ranks: 1 2 4
// settings: FOMPI_STRICT=1

#include "check.h"

static MPI_Win win;
static long value = 7, got;

static void without_an_epoch(int target)
{
    EXPECT(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Get(&got, 1, MPI_LONG, target, 0, 1, MPI_LONG, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win),
           MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Fetch_and_op(&value, &got, MPI_LONG, target, 0, MPI_SUM, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Compare_and_swap(&value, &value, &got, MPI_LONG, target, 0, win),
           MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_unlock(target, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_flush(target, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_flush_local(target, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
}

static void inside_a_lock(int target)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_start(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC);
    // The epoch is still the one that was opened.
    OK(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
    EXPECT(MPI_Win_unlock(target, win), MPI_ERR_RMA_SYNC);
}

static void at_a_target_without_a_lock(void)
{
    if (size == 1)
        return;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    EXPECT(MPI_Put(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_unlock(next_rank(), win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_flush(next_rank(), win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_unlock(rank, win));
}

static void after_one_of_several_unlocks(void)
{
    for (int target = 0; target < size; target++)
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    for (int target = 0; target < size; target++) {
        for (int locked = target; locked < size; locked++) {
            OK(MPI_Put(&value, 1, MPI_LONG, locked, 0, 1, MPI_LONG, win));
            OK(MPI_Win_flush(locked, win));
        }
        OK(MPI_Win_unlock(target, win));
        EXPECT(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win), MPI_ERR_RMA_SYNC);
        EXPECT(MPI_Win_unlock(target, win), MPI_ERR_RMA_SYNC);
    }
}

static void inside_lock_all(int target)
{
    OK(MPI_Win_lock_all(0, win));
    EXPECT(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win), MPI_ERR_RMA_SYNC);
    EXPECT(MPI_Win_unlock(target, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_flush(target, win));
    OK(MPI_Win_unlock_all(win));
    EXPECT(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
}

// Only the targets of the start may be accessed.
static void outside_the_started_group(void)
{
    MPI_Group world, self;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &rank, &self));
    OK(MPI_Win_post(self, 0, win));
    EXPECT(MPI_Win_post(self, 0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_start(self, 0, win));
    EXPECT(MPI_Win_start(self, 0, win), MPI_ERR_RMA_SYNC);
    if (size > 1)
        EXPECT(MPI_Put(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Put(&value, 1, MPI_LONG, rank, 1, 1, MPI_LONG, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&world));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    long *base = returning_window_of(64, sizeof(long), &win);
    without_an_epoch(next_rank());
    OK(MPI_Barrier(MPI_COMM_WORLD));
    inside_a_lock(next_rank());
    at_a_target_without_a_lock();
    after_one_of_several_unlocks();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    inside_lock_all(next_rank());
    OK(MPI_Barrier(MPI_COMM_WORLD));
    outside_the_started_group();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(base[0], 7);
    CHECK_EQ(base[1], 7);
    CHECK_EQ(base[2], 0);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 2, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[2], 7);
    OK(MPI_Win_free(&win));
    return check_end();
}
