// Windows over communicators that split the ranks into disjoint groups, and over communicators that
// overlap, keep their memory apart while all are alive. MPI-4.1 sections 12.2.2 and 12.2.5.
// ranks: 2 4 8

#include "check.h"

// Everyone puts its rank in `comm`, plus `mark`, into the next rank of `comm`.
static void ring(MPI_Win win, const int *base, int my_rank, int ranks, int mark)
{
    int value = mark + my_rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, (my_rank + 1) % ranks, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[0], mark + (my_rank + ranks - 1) % ranks);
}

// Makes a window over `comm`, frees the communicator first, and uses the window afterwards.
static void window_outlives(MPI_Comm comm, int mark)
{
    MPI_Win win;
    int *base, my_rank, ranks;
    OK(MPI_Comm_rank(comm, &my_rank));
    OK(MPI_Comm_size(comm, &ranks));
    OK(MPI_Win_allocate(16, sizeof(int), MPI_INFO_NULL, comm, &base, &win));
    OK(MPI_Comm_free(&comm));
    ring(win, base, my_rank, ranks, mark);
    ring(win, base, my_rank, ranks, mark + 1000);
    OK(MPI_Win_free(&win));
}

static MPI_Comm split(int colour, int key)
{
    MPI_Comm comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, colour, key, &comm));
    return comm;
}

// Overlapping windows over three communicators do not touch each other's memory.
static void several_alive(void)
{
    MPI_Comm comms[3] = {split(0, -rank), split(rank / 2, rank), split(rank % 2, rank)};
    MPI_Win wins[3];
    int *bases[3], ranks[3], sizes[3];
    for (int i = 0; i < 3; i++) {
        OK(MPI_Comm_rank(comms[i], &ranks[i]));
        OK(MPI_Comm_size(comms[i], &sizes[i]));
        OK(MPI_Win_allocate(16, sizeof(int), MPI_INFO_NULL, comms[i], &bases[i],
                            &wins[i]));
    }
    for (int i = 0; i < 3; i++)
        ring(wins[i], bases[i], ranks[i], sizes[i], 10 * i);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(*bases[i], 10 * i + (ranks[i] + sizes[i] - 1) % sizes[i]);
    OK(MPI_Win_free(&wins[1]));
    ring(wins[0], bases[0], ranks[0], sizes[0], 70);
    ring(wins[2], bases[2], ranks[2], sizes[2], 90);
    CHECK_EQ(*bases[0], 70 + (ranks[0] + sizes[0] - 1) % sizes[0]);
    OK(MPI_Win_free(&wins[0]));
    OK(MPI_Win_free(&wins[2]));
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_free(&comms[i]));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    window_outlives(split(rank / 2, rank), 300);
    several_alive();
    return check_end();
}
