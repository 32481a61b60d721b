/* The grid: how it is divided among the ranks, what a neighbour has to know of another, and one
 * step of the computation. */
#include "../notify.h"
#include "stencil.h"

enum { FLAG_BYTES = 64 }; /* at the start of a window; the arrays come after them */

/* The points of a dimension that has this block among so many, and the first one, from 1. */
static int block_size(int points, int blocks, int block) {
    return points / blocks + (block < points % blocks);
}
static int block_start(int points, int blocks, int block) {
    int larger = block < points % blocks ? block : points % blocks;
    return 1 + block * (points / blocks) + larger;
}

/* A layer of cells in an array of blocks of this size: all of the block in the other dimensions,
 * the cells `at` in this one. Each dimension has a layer of halo at 0 and one at size + 1. */
static MPI_Datatype layer(int dims, const int size[], int dim, int at) {
    int whole[DIMS_MAX], part[DIMS_MAX], from[DIMS_MAX];
    for (int d = 0; d < dims; d++) {
        whole[d] = size[d] + 2;
        part[d] = d == dim ? 1 : size[d];
        from[d] = d == dim ? at : 1;
    }
    MPI_Datatype type;
    MPI_Type_create_subarray(dims, whole, part, from, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static MPI_Aint array_bytes(int dims, const int size[]) {
    MPI_Aint bytes = sizeof(double);
    for (int d = 0; d < dims; d++) bytes *= size[d] + 2;
    return bytes;
}

/* The neighbour at the lower (0) or upper (1) end of a dimension. In this dimension its block may
 * have another size than ours, so its halo is elsewhere in its array. A put needs both places: the
 * origin describes the memory of the target, too. */
static Neighbour neighbour_of(const Grid *g, int rank, int dim, int is_upper, int blocks, int at) {
    int theirs[DIMS_MAX];
    for (int d = 0; d < g->dims; d++) theirs[d] = g->size[d];
    theirs[dim] = block_size(g->points, blocks, at + (is_upper ? 1 : -1));
    Neighbour n = {.rank = rank, .side = 2 * dim + is_upper, .their_side = 2 * dim + !is_upper};
    n.border = layer(g->dims, g->size, dim, is_upper ? g->size[dim] : 1);
    n.halo = layer(g->dims, g->size, dim, is_upper ? g->size[dim] + 1 : 0);
    n.their_halo = layer(g->dims, theirs, dim, is_upper ? 0 : theirs[dim] + 1);
    n.their_u[0] = FLAG_BYTES;
    n.their_u[1] = FLAG_BYTES + array_bytes(g->dims, theirs);
    return n;
}

static void create_neighbours(Grid *g, const int blocks[], const int coordinates[]) {
    int ranks[NEIGHBOURS_MAX];
    g->neighbours = 0;
    for (int d = 0; d < g->dims; d++) {
        int ends[2]; /* MPI_PROC_NULL at the edge of the grid */
        MPI_Cart_shift(g->comm, d, 1, &ends[0], &ends[1]);
        for (int upper = 0; upper < 2; upper++) {
            if (ends[upper] == MPI_PROC_NULL) continue;
            ranks[g->neighbours] = ends[upper];
            g->neighbour[g->neighbours++] =
                neighbour_of(g, ends[upper], d, upper, blocks[d], coordinates[d]);
        }
    }
    MPI_Group all;
    MPI_Comm_group(g->comm, &all);
    MPI_Group_incl(all, g->neighbours, ranks, &g->neighbour_group);
    MPI_Group_free(&all);
}

void grid_create(Grid *g, MPI_Comm comm, int dims, int points) {
    int ranks, rank, blocks[DIMS_MAX] = {0}, periods[DIMS_MAX] = {0}, coordinates[DIMS_MAX];
    g->dims = dims;
    g->points = points;
    MPI_Comm_size(comm, &ranks);
    MPI_Dims_create(ranks, dims, blocks);
    MPI_Cart_create(comm, dims, blocks, periods, 1, &g->comm);
    MPI_Comm_rank(g->comm, &rank);
    MPI_Cart_coords(g->comm, rank, dims, coordinates);
    g->cells = 1;
    for (int d = dims - 1; d >= 0; d--) {
        g->size[d] = block_size(points, blocks[d], coordinates[d]);
        g->start[d] = block_start(points, blocks[d], coordinates[d]);
        g->stride[d] = g->cells;
        g->cells *= g->size[d] + 2;
    }
    char *memory;
    MPI_Aint bytes = array_bytes(dims, g->size);
    MPI_Win_allocate(FLAG_BYTES + 2 * bytes, 1, MPI_INFO_NULL, g->comm, &memory, &g->win);
    g->flags = (unsigned char *)memory;
    g->u[0] = (double *)(memory + FLAG_BYTES);
    g->u[1] = (double *)(memory + FLAG_BYTES + bytes);
    g->notified[0] = g->notified[1] = 0;
    if (has_notify()) FOMPI_Win_set_num_notify(g->win, MPI_INFO_NULL, 2);
    create_neighbours(g, blocks, coordinates);
}

void grid_free(Grid *g) {
    for (int i = 0; i < g->neighbours; i++) {
        MPI_Type_free(&g->neighbour[i].border);
        MPI_Type_free(&g->neighbour[i].halo);
        MPI_Type_free(&g->neighbour[i].their_halo);
    }
    MPI_Group_free(&g->neighbour_group);
    MPI_Win_free(&g->win); /* and its memory */
    MPI_Comm_free(&g->comm);
}

/* Where a cell of an array is in the whole grid: 1 to `points`, with 0 and points + 1 the edges. */
void grid_position(const Grid *g, long cell, int position[]) {
    for (int d = 0; d < g->dims; d++) {
        position[d] = g->start[d] - 1 + (int)(cell / g->stride[d]);
        cell %= g->stride[d];
    }
}

/* Whether a position is one of the points that this rank computes. */
int grid_is_inner(const Grid *g, const int position[]) {
    for (int d = 0; d < g->dims; d++)
        if (position[d] < g->start[d] || position[d] >= g->start[d] + g->size[d]) return 0;
    return 1;
}

/* The points of one row, along the last dimension: each becomes warmer or colder by a share of the
 * difference to its four or six neighbours. */
static void sweep_row(const Grid *g, const double *now, double *next, long first) {
    double share = diffusion(g->dims);
    long row = g->stride[g->dims - 2], plane = g->stride[0];
    for (long i = first; i < first + g->size[g->dims - 1]; i++) {
        double sum = now[i - 1] + now[i + 1] + now[i - row] + now[i + row];
        if (g->dims == 3) sum += now[i - plane] + now[i + plane];
        next[i] = now[i] + share * (sum - 2 * g->dims * now[i]);
    }
}

/* One step of the heat equation, explicit in time: reads all of `now` except its corners, writes
 * the inner points of `next`. */
void sweep(const Grid *g, const double *now, double *next) {
    int planes = g->dims == 3 ? g->size[0] : 1, rows = g->size[g->dims - 2];
    for (int plane = 0; plane < planes; plane++)
        for (int row = 0; row < rows; row++) {
            long first = (row + 1) * g->stride[g->dims - 2] + 1;
            if (g->dims == 3) first += (plane + 1) * g->stride[0];
            sweep_row(g, now, next, first);
        }
}
