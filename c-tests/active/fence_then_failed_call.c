// A call that was refused after a fence has not begun an epoch: a lock, a start or a post may follow
// as if it had not been made. MPI-4.1 sections 12.5.1 and 12.5.3.
// ranks: 1 2 4

#include "check.h"

static int *base;
static MPI_Win win;

static void refused(void)
{
    int value = 9, got = -1;
    const int next = next_rank();
    OK(MPI_Win_fence(0, win));
    EXPECT(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    EXPECT(MPI_Put(&value, -1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    EXPECT(MPI_Get(&got, 1, MPI_DATATYPE_NULL, next, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    EXPECT(MPI_Accumulate(&value, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP);
    CHECK_EQ(got, -1);
}

static void with_itself(void)
{
    int value = 6;
    MPI_Group world, self;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &rank, &self));
    OK(MPI_Win_post(self, 0, win));
    OK(MPI_Win_start(self, 0, win));
    OK(MPI_Put(&value, 1, MPI_INT, rank, 1, 1, MPI_INT, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&world));
}

int main(int argc, char **argv)
{
    int value = 5;
    check_start(&argc, &argv);
    base = returning_window_of(64, sizeof(int), &win);
    refused();
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock(next_rank(), win));
    refused();
    CHECK_EQ(base[0], 5);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_unlock_all(win));
    refused();
    with_itself();
    CHECK_EQ(base[1], 6);
    refused();
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 2, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(base[2], 5);
    OK(MPI_Win_free(&win));
    return check_end();
}
