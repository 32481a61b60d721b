// A fence with MPI_MODE_NOPRECEDE ends no epoch, so it need not wait for other ranks (MPI-4.1
// §12.5.1): between nodes of one rank each it does not, and the first access behind it does. No put
// comes before its target has opened the epoch. What the plain MPI does is not tested: its fence may
// wait.
// ranks: 2 3 4

#include "nodes.h"

#include <dlfcn.h>
#include <unistd.h>

enum { ROUNDS = 12 };

static long *slots;
static MPI_Win win;

// Whether all ranks but this one have put the value of a round.
static void shows(long value)
{
    for (int of = 0; of < size; of++)
        if (of != rank)
            CHECK(slots[of] == value);
}

static void put_everywhere(const long *value)
{
    for (int to = 0; to < size; to++)
        if (to != rank)
            OK(MPI_Put(value, 1, MPI_LONG, to, rank, 1, MPI_LONG, win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    OK(MPI_Win_allocate(size * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                        &slots, &win));
    for (int of = 0; of < size; of++)
        slots[of] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int returns = dlsym(RTLD_DEFAULT, "fompi_version") != NULL && ranks_per_node() == 1;
    for (long round = 1; round <= ROUNDS; round++) {
        const int late = (int)(round % size);
        if (rank == late)
            usleep(2000);
        // The late one opens its epoch only when the others have opened theirs.
        if (returns && rank == late)
            for (int other = 1; other < size; other++)
                OK(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        shows(round - 1);
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        if (returns && rank != late)
            OK(MPI_Send(NULL, 0, MPI_INT, late, 1, MPI_COMM_WORLD));
        // In every third round a rank has nothing to put: its closing fence waits.
        if (round % 3 != 0 || rank != late)
            put_everywhere(&round);
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        if (round % 3 == 0 && rank != late)
            slots[late] = round;
        shows(round);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
