// The nodes of scripts/dev/cluster are nodes to MPI and to the system: what shares memory is what
// has the same host name, a node sees its own shared memory and processes and not those of others,
// and messages pass between all. For tests/test_cluster.py, which says how many nodes there are.

#define _GNU_SOURCE
#include "../check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>

enum { NAME = 64, RANKS_MAX = 64, SECRET = 0x5ec4e7 };

static char names[RANKS_MAX][NAME];

static int same_node(int a, int b) { return strcmp(names[a], names[b]) == 0; }

// The communicator of ranks that share memory has the ranks of this host name.
static void communicators(int node_count)
{
    MPI_Comm node;
    int node_rank, node_size, expected = 0, leads, leaders;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
    OK(MPI_Comm_rank(node, &node_rank));
    OK(MPI_Comm_size(node, &node_size));
    for (int i = 0; i < size; i++)
        expected += same_node(i, rank);
    CHECK_EQ(node_size, expected);
    leads = node_rank == 0;
    OK(MPI_Allreduce(&leads, &leaders, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(leaders, node_count);
    OK(MPI_Comm_free(&node));
}

// A shared memory object and the memory of rank 0 are within reach on its node alone.
static void reach(void)
{
    static volatile long secret;
    struct { long pid, address; char name[NAME]; } of_first;
    memset(&of_first, 0, sizeof of_first);
    secret = rank == 0 ? SECRET : -1;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    of_first.pid = getpid();
    of_first.address = (long)&secret;
    snprintf(of_first.name, NAME, "/topology.%ld", of_first.pid);
    if (rank == 0)
        CHECK(shm_open(of_first.name, O_CREAT | O_EXCL | O_RDWR, 0600) >= 0);
    OK(MPI_Bcast(&of_first, sizeof of_first, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_EQ(shm_open(of_first.name, O_RDWR, 0600) >= 0, same_node(0, rank));
    long got = 0;
    struct iovec here = {&got, sizeof got}, there = {(void *)of_first.address, sizeof got};
    long moved = process_vm_readv((pid_t)of_first.pid, &here, 1, &there, 1, 0);
    CHECK(same_node(0, rank) || moved != sizeof got || got != SECRET);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        CHECK_EQ(shm_unlink(of_first.name), 0);
}

static void messages(void)
{
    for (int bytes = 1; bytes <= 1 << 21; bytes *= 8) {
        char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
        CHECK(out != NULL && in != NULL);
        memset(out, rank + bytes, (size_t)bytes);
        OK(MPI_Sendrecv(out, bytes, MPI_CHAR, next_rank(), 7, in, bytes, MPI_CHAR, previous_rank(),
                        7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < bytes; i++)
            CHECK_EQ(in[i], (char)(previous_rank() + bytes));
        free(out);
        free(in);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK(argc == 2 && size <= RANKS_MAX);
    CHECK_EQ(gethostname(names[rank], NAME), 0);
    OK(MPI_Allgather(MPI_IN_PLACE, NAME, MPI_CHAR, names, NAME, MPI_CHAR, MPI_COMM_WORLD));
    communicators(atoi(argv[1]));
    reach();
    messages();
    return check_end();
}
