/* The exchange of halos: each rank's ghosts become copies of its neighbours' sites.
 *
 * An exchange concerns the sites of one parity. `start` sends what the neighbours need, `finish`
 * returns when the ghosts have arrived. In between the caller computes what needs no ghost, and
 * does not change the sites of that parity. The ghosts are there until the next exchange starts.
 *
 * Exchanges alternate between even and odd sites. This is the double buffer of all variants: the
 * two parities have buffers and ghosts of their own, and a rank that has received a neighbour's
 * data of one exchange knows that this neighbour has finished the exchange before.
 */
#ifndef HALO_H
#define HALO_H

#include "geometry.h"
#include "su3.h"

typedef struct Halo Halo;

struct Halo {
    const Lattice *lattice;
    Vector *field; /* its ghosts are filled; the variant allocates it as it needs it */
    void (*start)(Halo *halo, int parity);
    void (*finish)(Halo *halo, int parity);
    void (*end)(Halo *halo); /* collective: frees the halo */
    int next_parity;         /* of the next exchange */
    double seconds;          /* in `start` and `finish` so far */
    long exchanges;
};

/* The variants; all are collective over the lattice's communicator. */
Halo *halo_messages(const Lattice *lattice);
Halo *halo_flags(const Lattice *lattice);
Halo *halo_datatypes(const Lattice *lattice);
Halo *halo_notify(const Lattice *lattice);

/* What callers use instead of the pointers: these check the order and measure the time. */
static inline void halo_start(Halo *halo, int parity) {
    if (parity != halo->next_parity) MPI_Abort(MPI_COMM_WORLD, 3);
    halo->next_parity = !parity;
    halo->seconds -= MPI_Wtime();
    halo->start(halo, parity);
    halo->seconds += MPI_Wtime();
}

static inline void halo_finish(Halo *halo, int parity) {
    halo->seconds -= MPI_Wtime();
    halo->finish(halo, parity);
    halo->seconds += MPI_Wtime();
    halo->exchanges++;
}

/* Copies the sites that the neighbour in a direction needs to a contiguous buffer. */
static inline void halo_pack(const Halo *halo, int parity, int direction, Vector *buffer) {
    const Lattice *l = halo->lattice;
    const int *face = l->face[parity][direction];
    for (int i = 0; i < l->face_sites[direction]; i++) buffer[i] = halo->field[face[i]];
}

#endif
