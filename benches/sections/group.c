/* The ranks that take part in a measurement: all, or some of the ranks of rank 0's node, or some of
 * all nodes. The others sleep: on a machine with few cores a rank that polls in a barrier takes
 * time from those that are measured. */
#define _GNU_SOURCE
#include "bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDLE_US = 1000 };

/* The node of this rank, as the lowest rank on it, and the index of this rank on its node. */
static int node, index_on_node, nodes, ranks_here;

/* For tests, libfompi takes the ranks of a machine for those of several nodes. */
static void divide(MPI_Comm *on_node) {
    const char *text = getenv("FOMPI_RANKS_PER_NODE");
    int index, each = text ? atoi(text) : 0;
    MPI_Comm part;
    if (each < 1) return;
    MPI_Comm_rank(*on_node, &index);
    MPI_Comm_split(*on_node, index / each, index, &part);
    MPI_Comm_free(on_node);
    *on_node = part;
}

void group_begin(void) {
    MPI_Comm on_node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &on_node);
    divide(&on_node);
    MPI_Comm_rank(on_node, &index_on_node);
    MPI_Comm_size(on_node, &ranks_here);
    MPI_Comm_rank(MPI_COMM_WORLD, &node);
    MPI_Bcast(&node, 1, MPI_INT, 0, on_node);
    int is_first = index_on_node == 0;
    MPI_Allreduce(&is_first, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    /* Rank 0's word counts: "one node" is its node. */
    MPI_Bcast(&ranks_here, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Comm_free(&on_node);
}

/* Whether all ranks of `comm` are on one node. */
static int is_one_node(MPI_Comm comm) {
    int lowest, highest;
    MPI_Allreduce(&node, &lowest, 1, MPI_INT, MPI_MIN, comm);
    MPI_Allreduce(&node, &highest, 1, MPI_INT, MPI_MAX, comm);
    return lowest == highest;
}

/* Collective. Makes `job` the group that `job.place` and `job.wanted` ask for; returns whether this
 * rank is in it. There is no such group if there are too few ranks or nodes. */
int group_open(void) {
    int world_rank, world_ranks, is_candidate = 1, order, candidates;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
    order = world_rank;
    if (strcmp(job.place, "node") == 0) is_candidate = node == 0;
    /* The first rank of each node, then the second one of each. */
    if (strcmp(job.place, "nodes") == 0) order = index_on_node * world_ranks + node;
    MPI_Allreduce(&is_candidate, &candidates, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (strcmp(job.place, "nodes") == 0 && nodes < 2) candidates = 0;
    if (job.wanted > candidates || candidates == 0) return 0;
    MPI_Comm all;
    MPI_Comm_split(MPI_COMM_WORLD, is_candidate ? 0 : MPI_UNDEFINED, order, &all);
    int is_member = 0, place = 0;
    if (is_candidate) {
        MPI_Comm_rank(all, &place);
        is_member = job.wanted == 0 || place < job.wanted;
    }
    MPI_Comm_split(MPI_COMM_WORLD, is_member ? 0 : MPI_UNDEFINED, place, &job.comm);
    if (is_candidate) MPI_Comm_free(&all);
    if (!is_member) return 0;
    MPI_Comm_rank(job.comm, &job.rank);
    MPI_Comm_size(job.comm, &job.ranks);
    job.is_one_node = is_one_node(job.comm);
    return 1;
}

/* Collective. The group is over; ranks that were not in it sleep until then. */
void group_close(void) {
    MPI_Request over;
    int is_over = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &over);
    for (MPI_Test(&over, &is_over, MPI_STATUS_IGNORE); !is_over;
         MPI_Test(&over, &is_over, MPI_STATUS_IGNORE))
        usleep(IDLE_US);
    if (job.comm != MPI_COMM_NULL && job.comm != MPI_COMM_WORLD) MPI_Comm_free(&job.comm);
    job.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
}

/* Rank 0 prints what the job runs on, a line for each fact. */
void group_about(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (!is_origin()) return;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    const char *(*layer)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "fompi_version");
    printf("about mpi %s\nabout ranks %d\nabout nodes %d\nabout ranks_on_node %d\n", version,
           job.ranks, nodes, ranks_here);
    printf("about layer %s%s\n", layer ? "libfompi " : "the MPI's own", layer ? layer() : "");
    fflush(stdout);
}
