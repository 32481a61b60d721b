// MPI_Win_test answers without waiting: not before the origins have completed, and in the end yes,
// after which the exposure epoch is over. MPI-4.1 section 12.5.2.
// ranks: 2 3 4 8

#include "check.h"

// Rank 0 exposes to all others, which hold back until it has seen a false answer.
static void target(int *base, MPI_Win win, MPI_Group others, int round)
{
    int flag = -1, token = 0;
    OK(MPI_Win_post(others, 0, win));
    OK(MPI_Win_test(win, &flag));
    CHECK_EQ(flag, 0);
    for (int r = 1; r < size; r++)
        OK(MPI_Send(&token, 1, MPI_INT, r, round, MPI_COMM_WORLD));
    while (!flag)
        OK(MPI_Win_test(win, &flag));
    for (int r = 1; r < size; r++)
        CHECK_EQ(base[r], 100 * round + r);
}

static void origin(MPI_Win win, MPI_Group zero, int round)
{
    int token, value = 100 * round + rank;
    OK(MPI_Win_start(zero, 0, win));
    OK(MPI_Put(&value, 1, MPI_INT, 0, rank, 1, MPI_INT, win));
    OK(MPI_Recv(&token, 1, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Win_complete(win));
}

int main(int argc, char **argv)
{
    MPI_Group world, zero, others;
    MPI_Win win;
    const int first = 0;
    check_start(&argc, &argv);
    int *base = window_of(64 * sizeof(int), sizeof(int), &win);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &first, &zero));
    OK(MPI_Group_excl(world, 1, &first, &others));
    for (int round = 1; round <= 20; round++) {
        if (rank == 0)
            target(base, win, others, round);
        else
            origin(win, zero, round);
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&zero));
    OK(MPI_Group_free(&others));
    OK(MPI_Win_free(&win));
    return check_end();
}
