// Threads make, use and free created windows side by side, each over a communicator of its own.
// MPI-4.1 sections 11.6 and 12.2.1.
// ranks: 1 2 4
// plain ranks: 1 2

#include "created.h"
#include "threads.h"

enum { THREADS = 3, TURNS = 25, LONGS = 500 };

static MPI_Comm comms[THREADS];
static long *memory[THREADS];

static void *work(void *argument)
{
    const int thread = *(int *)argument;
    for (int turn = 0; turn < TURNS; turn++) {
        const long value = 1000 * thread + 10 * turn + rank;
        long *base = memory[thread] + 2 * turn;
        MPI_Win win;
        OK(MPI_Win_create(base, (1 + turn) * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL,
                          comms[thread], &win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), turn, 1, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
        CHECK_EQ(base[turn], 1000 * thread + 10 * turn + previous_rank());
        OK(MPI_Win_free(&win));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (!check_start_threads(&argc, &argv))
        return check_end();
    for (int t = 0; t < THREADS; t++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
        memory[t] = heap_memory(LONGS * sizeof(long));
    }
    run_numbered_threads(THREADS, work);
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_free(&comms[t]));
    return check_end();
}
