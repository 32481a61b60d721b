/* Conjugate gradients for staggered fermions. */
#include "cg.h"

#include "../example.h"

/* result = D of the field, on these sites. */
static void hop(const Operator *a, const int *sites, int count, Vector *result) {
    const Lattice *l = a->halo->lattice;
    const Vector *field = a->halo->field;
    for (int i = 0; i < count; i++) {
        int site = sites[i];
        Vector sum = {0};
        for (int d = 0; d < DIRECTIONS; d++)
            vector_add_product(&sum, &a->links[site][d], &field[l->next[site][d]]);
        result[site] = sum;
    }
}

/* result = D of the field's sites of this parity, on the sites of the other one. Those that need no
 * ghost are computed while the ghosts are on their way. */
static void hop_from(const Operator *a, int parity, Vector *result) {
    const Lattice *l = a->halo->lattice;
    halo_start(a->halo, parity);
    hop(a, l->inner[!parity], l->inner_sites, result);
    halo_finish(a->halo, parity);
    hop(a, l->outer[!parity], l->outer_sites, result);
}

void operator_apply(const Operator *a, Vector *result) {
    Vector *field = a->halo->field;
    double mass2 = a->mass * a->mass;
    hop_from(a, EVEN, field);
    hop_from(a, ODD, result);
    for (int s = 0; s < a->halo->lattice->sites / 2; s++)
        for (int i = 0; i < 3; i++) {
            result[s].c[i].re = mass2 * field[s].c[i].re - result[s].c[i].re;
            result[s].c[i].im = mass2 * field[s].c[i].im - result[s].c[i].im;
        }
}

/* to += factor * from */
static void add(int sites, Vector *to, double factor, const Vector *from) {
    for (int s = 0; s < sites; s++)
        for (int i = 0; i < 3; i++) {
            to[s].c[i].re += factor * from[s].c[i].re;
            to[s].c[i].im += factor * from[s].c[i].im;
        }
}

/* to = from + factor * to */
static void scale_and_add(int sites, Vector *to, double factor, const Vector *from) {
    for (int s = 0; s < sites; s++)
        for (int i = 0; i < 3; i++) {
            to[s].c[i].re = from[s].c[i].re + factor * to[s].c[i].re;
            to[s].c[i].im = from[s].c[i].im + factor * to[s].c[i].im;
        }
}

/* The real part of the scalar product over all ranks. */
static double dot(const Lattice *l, const Vector *a, const Vector *b) {
    double sum = 0;
    for (int s = 0; s < l->sites / 2; s++) sum += vector_dot(&a[s], &b[s]).re;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, l->comm);
    return sum;
}

void cg_solve(const Operator *a, const Vector *b, Vector *x, double tolerance, int most,
              History *history) {
    const Lattice *l = a->halo->lattice;
    int half = l->sites / 2, n = 0;
    /* The search direction is in the halo's field, because it is what neighbours need. */
    Vector *p = a->halo->field, *r = malloc(half * sizeof *r), *ap = malloc(half * sizeof *ap);
    double start = MPI_Wtime();
    memset(x, 0, half * sizeof *x);
    memcpy(r, b, half * sizeof *r);
    memcpy(p, b, half * sizeof *p);
    double rr = dot(l, r, r), bb = rr;
    history->residual[0] = 1;
    while (n < most && history->residual[n] > tolerance) {
        operator_apply(a, ap);
        double alpha = rr / dot(l, p, ap);
        add(half, x, alpha, p);
        add(half, r, -alpha, ap);
        double before = rr;
        rr = dot(l, r, r);
        scale_and_add(half, p, rr / before, r);
        history->residual[++n] = sqrt(rr / bb);
        example_progress("iteration %d, residual %.1e", n, history->residual[n]);
    }
    history->iterations = n;
    history->seconds = MPI_Wtime() - start;
    free(r);
    free(ap);
}

double true_residual(const Operator *a, const Vector *b, const Vector *x) {
    const Lattice *l = a->halo->lattice;
    int half = l->sites / 2;
    Vector *r = malloc(half * sizeof *r);
    memcpy(a->halo->field, x, half * sizeof *x);
    operator_apply(a, r);
    scale_and_add(half, r, -1, b);
    double residual = sqrt(dot(l, r, r) / dot(l, b, b));
    free(r);
    return residual;
}
