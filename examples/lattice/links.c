/* The gauge field, by a generator of random numbers that counts instead of having a state. */
#include "links.h"

#include <stdlib.h>

/* What numbers are drawn for at a site: links in four directions, and two more. */
enum { FOR_GAUGE = DIMENSIONS, FOR_SOURCE, PURPOSES };

/* The output function of the generator SplitMix64. */
static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Random number `index` of a stream, in (0, 1]. */
static double uniform(uint64_t stream, uint64_t index) {
    uint64_t bits = mixed(mixed(stream + 1) + (index + 1) * 0x9e3779b97f4a7c15u);
    return ((bits >> 11) + 1) * 0x1p-53;
}

/* Complex Gaussian numbers (Box and Muller). */
static Vector gaussian(uint64_t stream, int first) {
    Vector v;
    for (int i = 0; i < 3; i++) {
        double length = sqrt(-log(uniform(stream, 2 * (first + i))));
        double angle = 2 * M_PI * uniform(stream, 2 * (first + i) + 1);
        v.c[i] = (Complex){length * cos(angle), length * sin(angle)};
    }
    return v;
}

static Matrix random_matrix(const Lattice *l, const int global[DIMENSIONS], int purpose) {
    uint64_t stream = lattice_number(l, global) * PURPOSES + purpose;
    return matrix_project(gaussian(stream, 0), gaussian(stream, 3));
}

Vector random_vector(const Lattice *l, const int global[DIMENSIONS]) {
    return gaussian(lattice_number(l, global) * PURPOSES + FOR_SOURCE, 0);
}

Matrix gauge_at(const Lattice *l, FieldKind kind, const int global[DIMENSIONS]) {
    return kind == GAUGE_FIELD ? random_matrix(l, global, FOR_GAUGE) : matrix_unit();
}

Matrix link_at(const Lattice *l, FieldKind kind, const int global[DIMENSIONS], int mu) {
    if (kind == RANDOM_FIELD) return random_matrix(l, global, mu);
    int beyond[DIMENSIONS];
    for (int d = 0; d < DIMENSIONS; d++) beyond[d] = global[d] + (d == mu);
    Matrix here = gauge_at(l, kind, global), there = gauge_at(l, kind, beyond);
    there = matrix_adjoint(&there);
    return matrix_product(&here, &there);
}

/* The staggered phase of a link, and its sign for the boundary: fields are periodic in x, y and z
 * and change their sign over the period of t. Coordinates may be -1. */
static double phase(const Lattice *l, const int global[DIMENSIONS], int mu) {
    int exponent = 0;
    for (int d = 0; d < mu; d++) exponent += global[d] + l->global[d]; /* extents are even */
    int last = l->global[3] - 1;
    int is_end = mu == 3 && (global[3] + l->global[3]) % l->global[3] == last;
    return (exponent + is_end) % 2 == 0 ? 1 : -1;
}

Links links_make(const Lattice *l, FieldKind kind) {
    Links links = malloc(l->sites * sizeof *links);
    for (int site = 0; site < l->sites; site++) {
        int at[DIMENSIONS];
        lattice_coordinates(l, site, at);
        for (int mu = 0; mu < DIMENSIONS; mu++) {
            Matrix u = link_at(l, kind, at, mu);
            links[site][mu] = matrix_scaled(&u, phase(l, at, mu) / 2);
            at[mu]--;
            u = link_at(l, kind, at, mu);
            u = matrix_adjoint(&u);
            links[site][mu + DIMENSIONS] = matrix_scaled(&u, -phase(l, at, mu) / 2);
            at[mu]++;
        }
    }
    return links;
}
