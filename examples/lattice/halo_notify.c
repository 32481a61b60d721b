/* The halo by notified puts: a rank packs a face and puts it straight into the neighbour's ghosts; the
 * put adds 1 to a counter there, behind the data. A rank waits until its counter has reached the number
 * of faces. One epoch lasts for the whole run, and nothing is reset: the threshold grows.
 *
 * There is a counter for each parity, because a fast neighbour may have sent the face of the next
 * exchange already, which is of the other parity. It cannot be two exchanges ahead, as for that it needs
 * this rank's next face; for the same reason no ghost is overwritten before it has been used. */
#include <stdlib.h>

#include "../notify.h"
#include "halo.h"

typedef struct {
    Halo halo;
    MPI_Win win; /* the field with its ghosts */
    Vector *buffer[2][DIRECTIONS];
    MPI_Count faces[2]; /* that have come or are on their way to this rank */
} Notified;

static void start(Halo *halo, int parity) {
    Notified *n = (Notified *)halo;
    const Lattice *l = halo->lattice;
    MPI_Win_flush_local_all(n->win); /* the buffers of this parity may be packed again */
    for (int d = 0; d < DIRECTIONS; d++) {
        if (l->neighbour[d] < 0) continue;
        int count = VECTOR_DOUBLES * l->face_sites[d];
        halo_pack(halo, parity, d, n->buffer[parity][d]);
        /* All ranks have their ghosts at the same places. */
        FOMPI_Put_notify(n->buffer[parity][d], count, MPI_DOUBLE, l->neighbour[d],
                         l->ghosts[parity][opposite(d)], count, MPI_DOUBLE, parity, n->win);
        n->faces[parity]++; /* as many come as go */
    }
}

static void finish(Halo *halo, int parity) {
    Notified *n = (Notified *)halo;
    FOMPI_Win_wait_notify(n->win, parity, n->faces[parity]);
}

static void end(Halo *halo) {
    Notified *n = (Notified *)halo;
    MPI_Win_unlock_all(n->win);
    MPI_Win_free(&n->win); /* with the field; waits for all ranks */
    for (int d = 0; d < DIRECTIONS; d++)
        for (int parity = 0; parity < 2; parity++) free(n->buffer[parity][d]);
    free(n);
}

Halo *halo_notify(const Lattice *l) {
    Notified *n = calloc(1, sizeof *n);
    n->halo = (Halo){.lattice = l, .start = start, .finish = finish, .end = end};
    for (int d = 0; d < DIRECTIONS; d++)
        for (int parity = 0; parity < 2; parity++)
            n->buffer[parity][d] = calloc(l->face_sites[d] + 1, sizeof(Vector));
    MPI_Win_allocate(l->field_sites * sizeof(Vector), sizeof(Vector), MPI_INFO_NULL, l->comm,
                     &n->halo.field, &n->win);
    for (int i = 0; i < l->field_sites; i++) n->halo.field[i] = (Vector){0};
    FOMPI_Win_set_num_notify(n->win, MPI_INFO_NULL, 2);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, n->win);
    MPI_Win_sync(n->win);
    MPI_Barrier(l->comm); /* no put comes before the zeros */
    return &n->halo;
}
