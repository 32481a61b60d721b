/* The exchange of one pattern: the window with the arrays, the places on both sides, and the
 * variants that move the elements. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdint.h>
#include "pattern.h"

/* Elements that move between this rank and a peer: their places in the arrays of both. */
typedef struct {
    int peer;
    Place mine, theirs;
} Transfer;

typedef struct {
    const Pattern *pattern;
    Domain domain;
    int transfers;         /* of each direction */
    size_t transfer_bytes; /* of each */
    Transfer *out, *in;

    MPI_Win window;        /* a counter of notices, the buffer `received`, the arrays */
    char *arrays, *received;
    size_t arrays_bytes;
    MPI_Aint arrays_at, received_at; /* their displacements in the window of every rank */
    int64_t expected;                /* notices since the beginning */
    char *packed;
    MPI_Request *requests;
    MPI_Status *statuses; /* not ignored: gcc warns of MPICH's constant for that */
} Exchange;

/* A variant, and the datatypes it needs: of a rank's own elements that leave and arrive, and of the
 * peer's. */
typedef struct {
    const char *name;
    void (*run)(Exchange *);
    int out_mine, out_theirs, in_mine, in_theirs;
} Variant;

extern const Variant variants[]; /* ends with a name of NULL */

/* Both collective. */
void exchange_begin(Exchange *e, const Pattern *pattern, int n);
void exchange_end(Exchange *e);

/* Whether the pattern has this variant. */
int exchange_has(const Exchange *e, const Variant *v);

void exchange_build_types(Exchange *e, const Variant *v);
void exchange_free_types(Exchange *e, const Variant *v);

/* Collective. Moves the elements once and returns the seconds. */
double exchange_run(Exchange *e, const Variant *v);

#endif
