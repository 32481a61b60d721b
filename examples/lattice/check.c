/* Checks of the field and of the free field's solution. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

void source_make(const Lattice *l, FieldKind kind, Vector *b) {
    for (int s = 0; s < l->sites / 2; s++) {
        int at[DIMENSIONS];
        lattice_coordinates(l, s, at);
        if (kind == RANDOM_FIELD) {
            b[s] = random_vector(l, at);
        } else {
            memset(&b[s], 0, sizeof b[s]);
            Matrix g = gauge_at(l, kind, at);
            if (lattice_number(l, at) == 0)
                for (int i = 0; i < 3; i++) b[s].c[i] = g.e[i][0];
        }
    }
}

double unitarity_error(const Lattice *l, Links links) {
    double worst = 0;
    for (int s = 0; s < l->sites; s++)
        for (int d = 0; d < DIRECTIONS; d++) {
            Matrix u = matrix_scaled(&links[s][d], 2), adjoint = matrix_adjoint(&u);
            Matrix one = matrix_product(&adjoint, &u);
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    worst = fmax(worst, hypot(one.e[i][j].re - (i == j), one.e[i][j].im));
        }
    return worst;
}

/* The halo's field of each site becomes that of the next site in direction `d`, carried along the
 * link. */
static void transport(const Operator *a, int d, Vector *result) {
    Halo *halo = a->halo;
    const Lattice *l = halo->lattice;
    for (int parity = EVEN; parity <= ODD; parity++) {
        halo_start(halo, parity);
        halo_finish(halo, parity);
        int first = parity == EVEN ? l->sites / 2 : 0;
        for (int s = first; s < first + l->sites / 2; s++) {
            result[s] = (Vector){0};
            vector_add_product(&result[s], &a->links[s][d], &halo->field[l->next[s][d]]);
        }
    }
    memcpy(halo->field, result, l->sites * sizeof *result);
}

static double sum_over_ranks(const Lattice *l, double sum) {
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, l->comm);
    return sum;
}

/* How many sites the whole lattice has. */
static double all_sites(const Lattice *l) {
    double sites = 1;
    for (int d = 0; d < DIMENSIONS; d++) sites *= l->global[d];
    return sites;
}

double plaquette_by_halo(const Operator *a) {
    const Lattice *l = a->halo->lattice;
    Vector *field = a->halo->field, *room = malloc(l->sites * sizeof *room);
    double sum = 0;
    for (int mu = 0; mu < DIMENSIONS; mu++)
        for (int nu = mu + 1; nu < DIMENSIONS; nu++)
            for (int colour = 0; colour < 3; colour++) {
                for (int s = 0; s < l->sites; s++) {
                    field[s] = (Vector){0};
                    field[s].c[colour].re = 1;
                }
                transport(a, opposite(nu), room);
                transport(a, opposite(mu), room);
                transport(a, nu, room);
                transport(a, mu, room);
                for (int s = 0; s < l->sites; s++) sum += field[s].c[colour].re;
            }
    free(room);
    /* The phases of a plaquette have the product -1, and each link has a factor 1/2. */
    return -16 * sum_over_ranks(l, sum) / (3 * 6 * all_sites(l));
}

double plaquette_by_definition(const Lattice *l, FieldKind kind) {
    double sum = 0;
    for (int s = 0; s < l->sites; s++)
        for (int mu = 0; mu < DIMENSIONS; mu++)
            for (int nu = mu + 1; nu < DIMENSIONS; nu++) {
                int at[DIMENSIONS];
                lattice_coordinates(l, s, at);
                Matrix here_mu = link_at(l, kind, at, mu), here_nu = link_at(l, kind, at, nu);
                at[mu]++;
                Matrix next_nu = link_at(l, kind, at, nu);
                at[mu]--;
                at[nu]++;
                Matrix next_mu = link_at(l, kind, at, mu);
                Matrix way = matrix_product(&here_mu, &next_nu);
                Matrix other = matrix_product(&here_nu, &next_mu);
                other = matrix_adjoint(&other);
                way = matrix_product(&way, &other);
                for (int i = 0; i < 3; i++) sum += way.e[i][i].re;
            }
    return sum_over_ranks(l, sum) / (3 * 6 * all_sites(l));
}

int plaquette_is_plausible(const Lattice *l, FieldKind kind, double plaquette) {
    if (kind != RANDOM_FIELD) return fabs(plaquette - 1) < 1e-12;
    /* By Haar's measure the mean of |tr U|^2 is 1, so Re tr U / 3 has the variance 1/18. Different
     * plaquettes are not correlated, as they share at most one link (an extent of 2 apart). */
    return fabs(plaquette) < 6 * sqrt(1.0 / (18 * 6 * all_sites(l)));
}

/* data(s) = sum over k of cos(k s) data(k) / extent, along one direction of the whole lattice. */
static void cosine_transform(double *data, const int global[DIMENSIONS], int axis) {
    int extent = global[axis], stride = 1, sites = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
        if (d < axis) stride *= global[d];
        sites *= global[d];
    }
    double *line = malloc(extent * sizeof *line);
    double offset = axis == 3 ? 0.5 : 0; /* antiperiodic in t */
    for (int first = 0; first < sites; first++) {
        if (first / stride % extent != 0) continue;
        for (int s = 0; s < extent; s++) {
            line[s] = 0;
            for (int k = 0; k < extent; k++)
                line[s] += cos(2 * M_PI * (k + offset) * s / extent) * data[first + k * stride];
        }
        for (int s = 0; s < extent; s++) data[first + s * stride] = line[s] / extent;
    }
    free(line);
}

/* The free operator is -D D = sum over mu of (2 - shift by 2 mu - shift by -2 mu) / 4, since the
 * phases make the mixed terms cancel. So its eigenvectors are plane waves, and the solution for one
 * site at the origin is the Fourier sum of 1 / (m^2 + sum over mu of sin^2 k_mu). That is even in
 * each component of k: cosines suffice. */
static double *free_solution(const Lattice *l, double mass) {
    int sites = all_sites(l);
    double *solution = malloc(sites * sizeof *solution);
    for (int n = 0; n < sites; n++) {
        double denominator = mass * mass;
        for (int d = 0, rest = n; d < DIMENSIONS; rest /= l->global[d], d++) {
            double k = 2 * M_PI * (rest % l->global[d] + (d == 3 ? 0.5 : 0)) / l->global[d];
            denominator += sin(k) * sin(k);
        }
        solution[n] = 1 / denominator;
    }
    for (int d = 0; d < DIMENSIONS; d++) cosine_transform(solution, l->global, d);
    return solution;
}

double free_field_error(const Lattice *l, FieldKind kind, double mass, const Vector *x) {
    double *exact = free_solution(l, mass), error = 0, size = 0;
    for (int s = 0; s < l->sites / 2; s++) {
        int at[DIMENSIONS];
        lattice_coordinates(l, s, at);
        double value = exact[lattice_number(l, at)];
        Matrix g = gauge_at(l, kind, at);
        for (int i = 0; i < 3; i++) {
            error += pow(x[s].c[i].re - value * g.e[i][0].re, 2);
            error += pow(x[s].c[i].im - value * g.e[i][0].im, 2);
        }
        size += value * value;
    }
    free(exact);
    return sqrt(sum_over_ranks(l, error) / sum_over_ranks(l, size));
}
