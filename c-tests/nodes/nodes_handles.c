// What transfers by memory handles cost between nodes: over TCP one request and one wait for a put or get that
// is complete when it returns, none for a put that is not; over an RDMA device one wait more. A dynamic window
// costs three waits. docs/decisions/0033. The plain MPI has nothing to count.
// ranks: 2 3 4

#include "../../include/fompi.h"
#include "handles.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { WORDS = 512 };

static int (*get_counts)(fompi_verbs_counts *);
static fompi_verbs_counts before;
static MPI_Win win;
static FOMPI_Mem mems[64];
static long values[WORDS];

static fompi_verbs_counts counted(void)
{
    fompi_verbs_counts counts;
    CHECK(get_counts(&counts));
    return counts;
}

static void cost_at(int line, uint64_t waits, uint64_t data)
{
    fompi_verbs_counts now = counted();
    uint64_t waited = now.waits - before.waits;
    uint64_t moved = now.puts + now.gets - before.puts - before.gets;
    if (waited != waits || moved != data)
        check_failed(__FILE__, line, "%d waits and %d requests with data, not %d and %d", (int)waited,
                     (int)moved, (int)waits, (int)data);
    before = counted();
}

#define COST(...) cost_at(__LINE__, __VA_ARGS__)

static void transfers(int target, int over_tcp)
{
    const uint64_t entry = over_tcp ? 0 : 1;
    MPI_Aint at = 8 * rank;
    before = counted();
    OK(FOMPI_Mem_put(values, 1, MPI_LONG, mems[target], at, 0));
    COST(entry, 1);
    OK(FOMPI_Complete(target, win));
    COST(1, 0);
    OK(FOMPI_Mem_get(values, 1, MPI_LONG, mems[target], at, FOMPI_BLOCKING));
    COST(entry + 1, 1);
    OK(FOMPI_Mem_put(values, 1, MPI_LONG, mems[target], at, FOMPI_REMOTE));
    COST(entry + 1, 1);
    OK(FOMPI_Mem_put(values, 1, MPI_LONG, mems[target], at, FOMPI_ORDERED));
    OK(FOMPI_Mem_put(values, 1, MPI_LONG, mems[target], at, FOMPI_ORDERED));
    COST(2 * entry, 2);
    OK(FOMPI_Complete(target, win));
    COST(1, 0);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    const char *ranks_per_node = getenv("FOMPI_RANKS_PER_NODE"), *network = getenv("FOMPI_NET");
    const int per_node = ranks_per_node ? atoi(ranks_per_node) : size;
    const int over_tcp = network && strcmp(network, "tcp") == 0;
    fompi_verbs_counts counts;
    if (has_handles() && get_counts) {
        void *base = NULL;
        win = dynamic_window();
        share(win, &base, sizeof values, mems);
        // All contacts are made before anything is counted.
        for (int i = 0; i < size; i++)
            OK(FOMPI_Mem_put(values, 1, MPI_LONG, mems[i], 8 * rank, FOMPI_REMOTE));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int turn = 0; turn < size; turn++) {
            const int target = (turn + per_node) % size;
            if (rank == turn && target / per_node != rank / per_node && get_counts(&counts))
                transfers(target, over_tcp);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        unshare(mems);
        OK(MPI_Free_mem(base));
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
