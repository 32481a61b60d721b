/* The halo by derived datatypes: each rank puts the sites of a face, wherever they are in its
 * field, straight into the neighbour's ghosts. No buffer is packed on either side.
 *
 * Post, start, complete and wait say when: an exposure epoch is open from the moment the ghosts of
 * a parity may be overwritten until the neighbours' puts are there. It begins long before it is
 * needed, at the end of the exchange before, so that usually no rank waits in `start`:
 *
 *   finish(odd):  wait  post | compute even sites | start(even): start  puts  complete ...
 *                            ^ the ghosts of even sites are free: they were for the odd sites
 *
 * So ghosts are put while this rank loads other ghosts of the same window and stores into its own
 * sites. The latter is allowed only in windows without a separate public copy (MPI-4.1 §12.4). */
#include <stdio.h>
#include <stdlib.h>

#include "halo.h"

typedef struct {
    Halo halo;
    MPI_Win win;
    MPI_Group neighbours;
    MPI_Datatype vector, face[2][DIRECTIONS];
} Datatypes;

static void start(Halo *halo, int parity) {
    Datatypes *t = (Datatypes *)halo;
    const Lattice *l = halo->lattice;
    MPI_Win_start(t->neighbours, 0, t->win);
    for (int d = 0; d < DIRECTIONS; d++)
        if (l->neighbour[d] >= 0)
            MPI_Put(halo->field, 1, t->face[parity][d], l->neighbour[d],
                    l->ghosts[parity][opposite(d)], l->face_sites[d], t->vector, t->win);
    /* The puts have left the field when this returns. */
    MPI_Win_complete(t->win);
}

static void finish(Halo *halo, int parity) {
    Datatypes *t = (Datatypes *)halo;
    (void)parity;
    MPI_Win_wait(t->win);
    MPI_Win_post(t->neighbours, 0, t->win); /* for the other parity */
}

static void end(Halo *halo) {
    Datatypes *t = (Datatypes *)halo;
    /* The last post needs a start, too. */
    MPI_Win_start(t->neighbours, 0, t->win);
    MPI_Win_complete(t->win);
    MPI_Win_wait(t->win);
    MPI_Win_free(&t->win);
    MPI_Group_free(&t->neighbours);
    for (int parity = EVEN; parity <= ODD; parity++)
        for (int d = 0; d < DIRECTIONS; d++) MPI_Type_free(&t->face[parity][d]);
    MPI_Type_free(&t->vector);
    free(t);
}

/* The neighbours, each once, though it may be the neighbour in two directions. */
static MPI_Group neighbours(const Lattice *l) {
    int ranks[DIRECTIONS], count = 0;
    for (int d = 0; d < DIRECTIONS; d++) {
        int is_new = l->neighbour[d] >= 0;
        for (int i = 0; i < count; i++) is_new &= ranks[i] != l->neighbour[d];
        if (is_new) ranks[count++] = l->neighbour[d];
    }
    MPI_Group all, some;
    MPI_Comm_group(l->comm, &all);
    MPI_Group_incl(all, count, ranks, &some);
    MPI_Group_free(&all);
    return some;
}

Halo *halo_datatypes(const Lattice *l) {
    Datatypes *t = calloc(1, sizeof *t);
    int *model, is_set;
    t->halo = (Halo){.lattice = l, .start = start, .finish = finish, .end = end};
    MPI_Win_allocate(l->field_sites * sizeof(Vector), sizeof(Vector), MPI_INFO_NULL, l->comm,
                     &t->halo.field, &t->win);
    MPI_Win_get_attr(t->win, MPI_WIN_MODEL, &model, &is_set);
    if (!is_set || *model != MPI_WIN_UNIFIED) {
        fprintf(stderr, "lattice: the variant `datatypes` needs the unified memory model\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Type_contiguous(VECTOR_DOUBLES, MPI_DOUBLE, &t->vector);
    MPI_Type_commit(&t->vector);
    for (int parity = EVEN; parity <= ODD; parity++)
        for (int d = 0; d < DIRECTIONS; d++) {
            MPI_Type_create_indexed_block(l->face_sites[d], 1, l->face[parity][d], t->vector,
                                          &t->face[parity][d]);
            MPI_Type_commit(&t->face[parity][d]);
        }
    t->neighbours = neighbours(l);
    MPI_Win_post(t->neighbours, 0, t->win);
    return &t->halo;
}
