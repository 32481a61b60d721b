/* The staggered operator D and the solution of (D^+ D + m^2) x = b. */
#ifndef CG_H
#define CG_H

#include "halo.h"
#include "links.h"

/* D connects even sites with odd ones only, and D^+ = -D. So the equations of the even sites are a
 * system of their own, A x = (m^2 - D D) x = b, which a solver exchanges half the sites for. */
typedef struct {
    Halo *halo;
    Links links;
    double mass;
} Operator;

typedef struct {
    double *residual; /* |b - A x| / |b| by the recursion, before each iteration and at the end */
    int iterations;
    double seconds;
} History;

/* result = A of the halo's field, on even sites. Overwrites the field's odd sites. */
void operator_apply(const Operator *a, Vector *result);

/* Collective. Solves A x = b on even sites, from x = 0, until the residual is below `tolerance` or
 * after `most` iterations; `history->residual` has room for one number more. */
void cg_solve(const Operator *a, const Vector *b, Vector *x, double tolerance, int most,
              History *history);

/* Collective. |b - A x| / |b|, computed anew. */
double true_residual(const Operator *a, const Vector *b, const Vector *x);

#endif
