/* The variants of the exchange, which is all the communication that a slab-decomposed FFT has. */
#include "ft.h"

#include <string.h>

#define ELEMENT MPI_C_DOUBLE_COMPLEX

static int first_row(const Exchange *x, int rank) { return first_of(x->rows, rank, x->ranks); }
static int first_plane(const Exchange *x, int rank) { return first_of(x->planes, rank, x->ranks); }

static int rows_of(const Exchange *x, int rank) {
    return first_row(x, rank + 1) - first_row(x, rank);
}

/* The number of elements that `planes` planes have in `rows` rows. */
static size_t elements(const Exchange *x, int planes, int rows) {
    return (size_t)planes * rows * x->nx;
}

/* --- alltoall, ialltoall: collectives ---
 *
 * What they send to one rank has to be contiguous, so a plane is computed in `one_plane` and packed
 * from there while it is in the cache. The planes of a rank are sent in `x->blocks` blocks, each by
 * one collective: a single block by MPI_Alltoallv, several by MPI_Ialltoallv while the program
 * computes the next ones. */

static Complex *place_of_one(Exchange *x, int plane) {
    (void)plane;
    return x->one_plane;
}

/* The first plane of a block, counted from the first plane of that rank. */
static int first_of_block(const Exchange *x, int rank, int block) {
    int planes = first_plane(x, rank + 1) - first_plane(x, rank);
    return first_of(planes, block, x->blocks);
}

static void pack(Exchange *x, int plane, int block) {
    int from = first_of_block(x, x->rank, block), to = first_of_block(x, x->rank, block + 1);
    Complex *sent = x->slab + elements(x, from, x->rows);
    for (int rank = 0; rank < x->ranks; rank++) {
        int row = first_row(x, rank), rows = rows_of(x, rank);
        memcpy(sent + elements(x, to - from, row) + elements(x, plane - from, rows),
               x->one_plane + elements(x, 1, row), sizeof(Complex) * elements(x, 1, rows));
    }
}

/* Counts and displacements that a collective reads until it is complete. */
typedef struct {
    int *sent, *sent_at, *received, *received_at;
} Lists;

static Lists lists_of(Exchange *x, int block) {
    int *at = x->lists + 4 * x->ranks * block;
    Lists lists = {at, at + x->ranks, at + 2 * x->ranks, at + 3 * x->ranks};
    int planes = first_of_block(x, x->rank, block + 1) - first_of_block(x, x->rank, block);
    for (int rank = 0; rank < x->ranks; rank++) {
        int from = first_of_block(x, rank, block), to = first_of_block(x, rank, block + 1);
        lists.sent[rank] = (int)elements(x, planes, rows_of(x, rank));
        lists.sent_at[rank] = (int)elements(x, planes, first_row(x, rank));
        lists.received[rank] = (int)elements(x, to - from, x->my_rows);
        lists.received_at[rank] = (int)elements(x, first_plane(x, rank) + from, x->my_rows);
    }
    return lists;
}

static void alltoall_begin(Exchange *x) { x->blocks = 1; }

static void alltoall_ready(Exchange *x, int plane) { pack(x, plane, 0); }

static void alltoall_finish(Exchange *x) {
    Lists l = lists_of(x, 0);
    MPI_Alltoallv(x->slab, l.sent, l.sent_at, ELEMENT, x->received, l.received, l.received_at,
                  ELEMENT, MPI_COMM_WORLD);
}

static void ialltoall_begin(Exchange *x) {
    x->blocks = x->blocks_max;
    x->requests_used = 0;
}

/* Sends the blocks that end before plane `end`. All ranks start all of them in the same order, also
 * those without planes. */
static void send_blocks(Exchange *x, int end) {
    while (x->requests_used < x->blocks) {
        int block = x->requests_used;
        if (first_of_block(x, x->rank, block + 1) > end) return;
        Lists l = lists_of(x, block);
        Complex *from = x->slab + elements(x, first_of_block(x, x->rank, block), x->rows);
        MPI_Ialltoallv(from, l.sent, l.sent_at, ELEMENT, x->received, l.received, l.received_at,
                       ELEMENT, MPI_COMM_WORLD, &x->requests[x->requests_used++]);
    }
}

static void ialltoall_ready(Exchange *x, int plane) {
    int block = 0, all_done;
    while (first_of_block(x, x->rank, block + 1) <= plane) block++;
    pack(x, plane, block);
    if (plane + 1 < x->my_planes) send_blocks(x, plane + 1);
    /* Many MPIs make progress only within calls of MPI: these calls give them the time. */
    MPI_Testall(x->requests_used, x->requests, &all_done, MPI_STATUSES_IGNORE);
}

static void ialltoall_finish(Exchange *x) {
    send_blocks(x, x->my_planes);
    MPI_Waitall(x->requests_used, x->requests, MPI_STATUSES_IGNORE);
}

/* --- messages: a message for each plane and rank --- */

static Complex *place_in_slab(Exchange *x, int plane) {
    return x->slab + elements(x, plane, x->rows);
}

/* Posts all receives first, so that no message has to be buffered. The tag is the plane. */
static void messages_begin(Exchange *x) {
    x->requests_used = 0;
    int count = (int)elements(x, 1, x->my_rows);
    for (int rank = 0; rank < x->ranks; rank++) {
        if (rank == x->rank || count == 0) continue;
        for (int plane = first_plane(x, rank); plane < first_plane(x, rank + 1); plane++)
            MPI_Irecv(x->received + elements(x, plane, x->my_rows), count, ELEMENT, rank, plane,
                      MPI_COMM_WORLD, &x->requests[x->requests_used++]);
    }
}

static void messages_ready(Exchange *x, int plane) {
    const Complex *from = place_in_slab(x, plane);
    int global = first_plane(x, x->rank) + plane;
    for (int i = 1; i < x->ranks; i++) {
        int rank = (x->rank + i) % x->ranks, count = (int)elements(x, 1, rows_of(x, rank));
        if (count > 0)
            MPI_Isend(from + elements(x, 1, first_row(x, rank)), count, ELEMENT, rank, global,
                      MPI_COMM_WORLD, &x->requests[x->requests_used++]);
    }
    memcpy(x->received + elements(x, global, x->my_rows),
           from + elements(x, 1, first_row(x, x->rank)),
           sizeof(Complex) * elements(x, 1, x->my_rows));
}

static void messages_finish(Exchange *x) {
    MPI_Waitall(x->requests_used, x->requests, MPI_STATUSES_IGNORE);
}

/* --- onesided: a put for each plane and rank --- */

/* Opens the epoch: when the fence returns, every rank has called it and so no longer reads what was
 * in its window. NOPRECEDE: no puts are pending that it would have to complete. */
static void onesided_begin(Exchange *x) { MPI_Win_fence(MPI_MODE_NOPRECEDE, x->window); }

/* Each rank starts with another target, so that they do not all put into one. */
static void onesided_ready(Exchange *x, int plane) {
    const Complex *from = place_in_slab(x, plane);
    int global = first_plane(x, x->rank) + plane;
    for (int i = 1; i <= x->ranks; i++) {
        int rank = (x->rank + i) % x->ranks, count = (int)elements(x, 1, rows_of(x, rank));
        MPI_Put(from + elements(x, 1, first_row(x, rank)), count, ELEMENT, rank,
                (MPI_Aint)global * count, count, ELEMENT, x->window);
    }
}

/* Closes the epoch: when it returns, all puts into this window are complete and the slab may be
 * overwritten (MPI-4.1 §12.5.1). NOSUCCEED: no puts follow. */
static void onesided_finish(Exchange *x) { MPI_Win_fence(MPI_MODE_NOSUCCEED, x->window); }

const Variant VARIANTS[] = {
    {"messages", messages_begin, place_in_slab, messages_ready, messages_finish},
    {"alltoall", alltoall_begin, place_of_one, alltoall_ready, alltoall_finish},
    {"ialltoall", ialltoall_begin, place_of_one, ialltoall_ready, ialltoall_finish},
    {"onesided", onesided_begin, place_in_slab, onesided_ready, onesided_finish},
    {NULL, NULL, NULL, NULL, NULL},
};
