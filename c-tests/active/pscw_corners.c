// Corners of post and start: a rank alone with itself, empty groups, NOCHECK, epochs without any
// operation, exposure and access at once. MPI-4.1 sections 12.5.2 and 12.5.5.
// ranks: 1 2 4

#include "check.h"

static int *base;
static MPI_Win win;

static void with_itself(MPI_Group self, int mark)
{
    OK(MPI_Win_post(self, 0, win));
    OK(MPI_Win_start(self, 0, win));
    OK(MPI_Put(&mark, 1, MPI_INT, rank, 0, 1, MPI_INT, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    CHECK_EQ(base[0], mark);
}

static void with_nobody(void)
{
    int flag = 0;
    OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_wait(win));
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    while (!flag)
        OK(MPI_Win_test(win, &flag));
}

// Every start says NOCHECK, so every post must be known to have been made.
static void unchecked(MPI_Group from, MPI_Group to, int mark)
{
    int value = mark + rank;
    OK(MPI_Win_post(from, MPI_MODE_NOCHECK, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_start(to, MPI_MODE_NOCHECK, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 1, 1, MPI_INT, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    CHECK_EQ(base[1], mark + previous_rank());
}

static void asserted(MPI_Group from, MPI_Group to)
{
    int got = -1;
    base[2] = 70 + rank;
    OK(MPI_Win_post(from, MPI_MODE_NOPUT, win));
    OK(MPI_Win_start(to, 0, win));
    OK(MPI_Get(&got, 1, MPI_INT, next_rank(), 2, 1, MPI_INT, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    CHECK_EQ(got, 70 + next_rank());
    OK(MPI_Win_post(from, MPI_MODE_NOSTORE | MPI_MODE_NOPUT, win));
    OK(MPI_Win_start(to, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
}

int main(int argc, char **argv)
{
    MPI_Group world, self, to, from;
    int next, previous;
    check_start(&argc, &argv);
    next = next_rank();
    previous = previous_rank();
    base = window_of(64, sizeof(int), &win);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &rank, &self));
    OK(MPI_Group_incl(world, 1, &next, &to));
    OK(MPI_Group_incl(world, 1, &previous, &from));
    for (int round = 0; round < 5; round++) {
        with_itself(self, 1000 * round);
        with_nobody();
        unchecked(from, to, 1000 * round + 100);
        asserted(from, to);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
    OK(MPI_Win_free(&win));
    return check_end();
}
