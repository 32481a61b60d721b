// Dynamic windows over parts of the ranks, over all of them in another order and over one alone;
// the communicator may be freed before the window. MPI-4.1 sections 12.2.4 and 12.2.5.
// ranks: 2 4

#include "dynamic.h"

enum { COUNT = 64 };

static int memory[COUNT];

// A ring over the ranks of the window, whose communicator is gone.
static void ring(MPI_Comm comm)
{
    MPI_Win win;
    MPI_Aint mine = address_of(memory), places[RANKS_MAX];
    int me, ranks, values[COUNT];
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &ranks));
    memset(memory, 0, sizeof memory);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
    OK(MPI_Win_attach(win, memory, sizeof memory));
    OK(MPI_Allgather(&mine, 1, MPI_AINT, places, 1, MPI_AINT, comm));
    if (comm != MPI_COMM_SELF)
        OK(MPI_Comm_free(&comm));
    const int next = (me + 1) % ranks, previous = (me + ranks - 1) % ranks;
    for (int i = 0; i < COUNT; i++)
        values[i] = 1000 * (me + 1) + i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(values, COUNT, MPI_INT, next, places[next], COUNT, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(memory[i], 1000 * (previous + 1) + i);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
}

static void split(int color, int key)
{
    MPI_Comm comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm));
    if (comm != MPI_COMM_NULL)
        ring(comm);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    split(0, -rank);
    split(rank % 2, rank);
    split(rank / 2, -rank);
    split(rank == 0 ? MPI_UNDEFINED : 1, rank);
    ring(MPI_COMM_SELF);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return check_end();
}
