/* The halo by messages: packed on one side, received straight into the ghosts on the other. */
#include <stdlib.h>

#include "halo.h"

typedef struct {
    Halo halo;
    Vector *buffer[DIRECTIONS];
    MPI_Request requests[2 * DIRECTIONS];
    int request_count;
} Messages;

static void start(Halo *halo, int parity) {
    Messages *m = (Messages *)halo;
    const Lattice *l = halo->lattice;
    m->request_count = 0;
    /* Receives first, so that the MPI has to buffer no message. The tag is the direction in which a
     * message travels: in a ring of two ranks both messages that a rank gets have one source. */
    for (int d = 0; d < DIRECTIONS; d++) {
        if (l->neighbour[d] < 0) continue;
        MPI_Irecv(halo->field + l->ghosts[parity][d], VECTOR_DOUBLES * l->face_sites[d],
                  MPI_DOUBLE, l->neighbour[d], opposite(d), l->comm,
                  &m->requests[m->request_count++]);
    }
    for (int d = 0; d < DIRECTIONS; d++) {
        if (l->neighbour[d] < 0) continue;
        halo_pack(halo, parity, d, m->buffer[d]);
        MPI_Isend(m->buffer[d], VECTOR_DOUBLES * l->face_sites[d], MPI_DOUBLE, l->neighbour[d], d,
                  l->comm, &m->requests[m->request_count++]);
    }
}

static void finish(Halo *halo, int parity) {
    Messages *m = (Messages *)halo;
    (void)parity;
    MPI_Waitall(m->request_count, m->requests, MPI_STATUSES_IGNORE);
}

static void end(Halo *halo) {
    Messages *m = (Messages *)halo;
    for (int d = 0; d < DIRECTIONS; d++) free(m->buffer[d]);
    free(halo->field);
    free(m);
}

Halo *halo_messages(const Lattice *l) {
    Messages *m = calloc(1, sizeof *m);
    m->halo = (Halo){.lattice = l, .start = start, .finish = finish, .end = end};
    m->halo.field = calloc(l->field_sites, sizeof(Vector));
    for (int d = 0; d < DIRECTIONS; d++)
        m->buffer[d] = calloc(l->face_sites[d] + 1, sizeof(Vector));
    return &m->halo;
}
