// Windows over one rank, some ranks, reversed ranks and duplicates, each freed
// after its communicator. MPI-4.1 sections 12.2.2 and 12.2.5.
// ranks: 1 2 3 4 8

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

// Only the even ranks have a window; the odd ones do not take part in its creation.
static void half_of_the_ranks(void)
{
    MPI_Comm comm = split(rank % 2 ? MPI_UNDEFINED : 0, rank);
    if (comm != MPI_COMM_NULL)
        window_outlives(comm, 500);
}

int main(int argc, char **argv)
{
    MPI_Comm duplicate, self;
    check_start(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &duplicate));
    window_outlives(duplicate, 100);
    window_outlives(split(0, -rank), 200);
    OK(MPI_Comm_dup(MPI_COMM_SELF, &self));
    window_outlives(self, 400);
    half_of_the_ranks();
    return check_end();
}
