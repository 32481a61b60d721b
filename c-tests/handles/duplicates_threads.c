// Each thread of a process has a duplicate of one window, and completes its own operations: what it has sent is
// there behind its flush, whatever the others do. docs/decisions/0035. The plain MPI has none.
// ranks: 2 4

#include "handles.h"
#include "threads.h"

enum { THREADS = 6, TURNS = 150, WORDS = 40 };

static MPI_Win win;
static long *base;

static void *send_and_complete(void *number)
{
    const int thread = *(int *)number;
    MPI_Win own;
    long values[WORDS], seen[WORDS], one = 1;
    const MPI_Aint at = 1 + (rank * THREADS + thread) * WORDS;
    OK(FOMPI_Win_dup(win, MPI_INFO_NULL, &own));
    for (int turn = 0; turn < TURNS; turn++) {
        const int to = (rank + turn) % size;
        for (int i = 0; i < WORDS; i++)
            values[i] = 1000 * turn + i;
        OK(MPI_Put(values, WORDS, MPI_LONG, to, at, WORDS, MPI_LONG, own));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, own));
        if (turn % 2)
            OK(MPI_Win_flush(to, own));
        else
            OK(MPI_Win_flush_all(own));
        memset(seen, 0, sizeof seen);
        OK(MPI_Get(seen, WORDS, MPI_LONG, to, at, WORDS, MPI_LONG, own));
        OK(MPI_Win_flush_local(to, own));
        for (int i = 0; i < WORDS; i++)
            CHECK_EQ(seen[i], values[i]);
    }
    OK(MPI_Win_free(&own)); // completes the accumulates
    return NULL;
}

int main(int argc, char **argv)
{
    if (!check_start_threads(&argc, &argv))
        return check_end();
    if (has_handles()) {
        const MPI_Aint bytes = (1 + size * THREADS * WORDS) * (MPI_Aint)sizeof(long);
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        base[0] = 0;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        run_numbered_threads(THREADS, send_and_complete);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_sync(win));
        if (rank == 0)
            CHECK_EQ(base[0], (long)size * THREADS * TURNS);
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
