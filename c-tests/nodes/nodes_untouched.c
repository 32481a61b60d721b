// An allocated window takes memory from the system when it is touched, also between nodes: a rank
// that has 64 MiB and touches none of them stays small, and the page that it touches is the one
// that it takes. Not over an RDMA device, which registers all pages; a plain MPI may take them all.
// MPI-4.1 section 12.2.2.
// ranks: 2 4

#define _GNU_SOURCE
#include "check.h"
#include "nodes.h"
#include "resident.h"

#include <dlfcn.h>

enum { LARGE = 64 << 20, SMALL = 8 << 20, FAR = 40 << 20 };

// The window is larger than all that is taken for it, with the page that other ranks touch.
static void allocated(void)
{
    char *base;
    MPI_Win win;
    long before = resident();
    MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    CHECK(resident() - before < SMALL);
    MPI_Win_lock_all(0, win);
    char byte = (char)(1 + rank);
    int next = (rank + 1) % size;
    MPI_Put(&byte, 1, MPI_CHAR, next, FAR, 1, MPI_CHAR, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(base[FAR], 1 + (rank + size - 1) % size);
    CHECK(resident() - before < SMALL);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const char *net = getenv("FOMPI_NET");
    int over_tcp = net != NULL && strcmp(net, "tcp") == 0;
    // The first one makes what the library needs for all.
    MPI_Win first;
    char *memory;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &first);
    int is_ours = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts") != NULL;
    if (is_ours && (over_tcp || ranks_per_node() == 0))
        allocated();
    MPI_Win_free(&first);
    return check_end();
}
