// Post, start, complete and wait between groups of every shape: neighbours, one to all, all to one,
// all to all, differently ordered, and repeated without anything between. MPI-4.1 section 12.5.2.
// ranks: 1 2 3 4 8
// plain ranks: 1 2

#include "check.h"

static long *base;
static MPI_Win win;
static MPI_Group world;

static MPI_Group group_of(int count, const int *ranks)
{
    MPI_Group group;
    OK(MPI_Group_incl(world, count, ranks, &group));
    return group;
}

// The ranks of `targets` expose, those of `origins` put their mark; a rank may be both.
static void round_of(int origin_count, const int *origins, int target_count, const int *targets,
                     long mark)
{
    MPI_Group from = group_of(origin_count, origins), to = group_of(target_count, targets);
    int is_origin, is_target;
    long value = mark + rank;
    OK(MPI_Group_rank(from, &is_origin));
    OK(MPI_Group_rank(to, &is_target));
    if (is_target != MPI_UNDEFINED)
        OK(MPI_Win_post(from, 0, win));
    if (is_origin != MPI_UNDEFINED) {
        OK(MPI_Win_start(to, 0, win));
        for (int i = 0; i < target_count; i++)
            OK(MPI_Put(&value, 1, MPI_LONG, targets[i], rank, 1, MPI_LONG, win));
        OK(MPI_Win_complete(win));
    }
    if (is_target != MPI_UNDEFINED) {
        OK(MPI_Win_wait(win));
        for (int i = 0; i < origin_count; i++)
            CHECK_EQ(base[origins[i]], mark + origins[i]);
    }
    OK(MPI_Group_free(&from));
    OK(MPI_Group_free(&to));
}

static void every_shape(long mark)
{
    int all[64], reversed[64], last = size - 1, half = (size + 1) / 2;
    for (int i = 0; i < size; i++) {
        all[i] = i;
        reversed[i] = size - 1 - i;
    }
    round_of(1, all, size, all, mark);
    round_of(size, all, 1, &last, mark + 100);
    round_of(size, all, size, reversed, mark + 200);
    round_of(size, reversed, size, all, mark + 300);
    round_of(half, all, half, reversed, mark + 400);
    round_of(1, &last, 1, all, mark + 500);
}

// Nobody but the two neighbours takes part, and nothing else holds the ranks together.
static void neighbours(long mark)
{
    int next = next_rank(), previous = previous_rank();
    MPI_Group to = group_of(1, &next), from = group_of(1, &previous);
    for (int i = 0; i < 100; i++) {
        long value = mark + i;
        OK(MPI_Win_post(from, 0, win));
        OK(MPI_Win_start(to, 0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next, 60, 1, MPI_LONG, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        CHECK_EQ(base[60], mark + i);
    }
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(64 * sizeof(long), sizeof(long), &win);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (long round = 1; round <= 3; round++) {
        every_shape(10000 * round);
        neighbours(10000 * round + 5000);
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Win_free(&win));
    return check_end();
}
