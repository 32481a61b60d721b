// What the first contact with a rank of another node costs: one READ of what it exposes, and one of
// who it is where it serves itself, by the first rank of a node that asks; the others find the
// answers in their node's notes. Formulas of docs/internals/many-nodes.md, which hold for the library; the
// plain MPI has nothing to count.
// ranks: 2 4 8

#include "../../include/fompi.h"
#include "nodes.h"

#include <dlfcn.h>
#include <stdlib.h>

static int (*get_counts)(fompi_verbs_counts *);
static int per_node;

static uint64_t gets(void)
{
    fompi_verbs_counts counts;
    CHECK(get_counts(&counts));
    return counts.gets;
}

// All ranks, one after the other, have to do with all targets; `reads` is what the first rank of a
// node needs for each of another node.
static void contact_all(MPI_Win win, uint64_t reads)
{
    const long value = rank;
    const int first = rank % per_node == 0;
    const int node = rank / per_node;
    const int here = size - node * per_node < per_node ? size - node * per_node : per_node;
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int turn = 0; turn < size; turn++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (turn != rank)
            continue;
        const uint64_t before = gets();
        for (int again = 0; again < 2; again++)
            for (int target = 0; target < size; target++)
                OK(MPI_Put(&value, 1, MPI_LONG, target, rank, 1, MPI_LONG, win));
        CHECK_EQ(gets() - before, first ? reads * (size - here) : 0);
    }
    OK(MPI_Win_unlock_all(win));
}

static void check_values(const long *base)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        CHECK_EQ(base[i], i);
}

static void allocated(void)
{
    MPI_Win win;
    long *base;
    OK(MPI_Win_allocate(size * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                        &win));
    contact_all(win, 1);
    check_values(base);
    OK(MPI_Win_free(&win));
}

static void created(uint64_t reads)
{
    MPI_Win win;
    long *base = malloc(size * sizeof *base);
    OK(MPI_Win_create(base, size * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD,
                      &win));
    contact_all(win, reads);
    check_values(base);
    OK(MPI_Win_free(&win));
    free(base);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    per_node = ranks_per_node();
    long *base;
    MPI_Win first;
    OK(MPI_Win_allocate(sizeof *base, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &first));
    fompi_verbs_counts counts;
    if (get_counts != NULL && per_node > 0 && get_counts(&counts)) {
        allocated();
        // Who a rank is does not change with the window.
        created(2);
        created(1);
    }
    OK(MPI_Win_free(&first));
    return check_end();
}
