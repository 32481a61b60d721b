// After a fence after which nothing is issued, a lock or a post-start epoch may follow without
// another fence, and after those a fence. MPI-4.1 sections 12.5.1 and 12.5.3.
// ranks: 1 2 4

#include "check.h"

static int *base;
static MPI_Win win;

static void locked_put(int mark)
{
    int value = mark + rank;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK_EQ(base[0], mark + previous_rank());
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void fenced_put(int mark)
{
    int value = mark + rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 1, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[1], mark + previous_rank());
}

static void lock_all_put(int mark)
{
    int value = mark + rank;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 2, 1, MPI_INT, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(base[2], mark + previous_rank());
}

static void posted_put(int mark)
{
    MPI_Group world, to, from;
    int value = mark + rank, next = next_rank(), previous = previous_rank();
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &next, &to));
    OK(MPI_Group_incl(world, 1, &previous, &from));
    OK(MPI_Win_post(from, 0, win));
    OK(MPI_Win_start(to, 0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next, 3, 1, MPI_INT, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    CHECK_EQ(base[3], mark + previous_rank());
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(64, sizeof(int), &win);
    for (int round = 0; round < 3; round++) {
        fenced_put(1000 * round);
        locked_put(1000 * round + 100);
        fenced_put(1000 * round + 200);
        lock_all_put(1000 * round + 300);
        posted_put(1000 * round + 400);
        locked_put(1000 * round + 500);
        posted_put(1000 * round + 600);
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
