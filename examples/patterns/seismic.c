/* SPECFEM3D, seismic waves: points that two ranks share are assembled. The points of a mesh are
 * numbered with no regard to the neighbours, so both sides have a list in no order. `oc` (outer
 * core): one float a point. `cm` (crust and mantle, with the inner core): three floats a point, in
 * two arrays of points with one list each. The kind is the number of arrays. */
#include "lists.h"
#include <stdlib.h>
#include <string.h>

enum { OC = 1, CM = 2 };

typedef struct {
    MPI_Aint at;
    int points, floats; /* floats of a point */
    int first, shared;  /* the part of the lists that is for this array */
} Points;

static int point_arrays(const Domain *d, Points p[CM]) {
    int n = d->n, floats = d->kind == OC ? 1 : 3;
    p[0] = (Points){0, n * n * n, floats, 0, n * n};
    p[1] = (Points){(MPI_Aint)sizeof(float) * floats * n * n * n, n * n * n / 8, floats, n * n,
                    n * n / 4};
    return d->kind;
}

static size_t points_bytes(const Domain *d) {
    Points p[CM], *last = &p[point_arrays(d, p) - 1];
    return last->at + sizeof(float) * last->floats * last->points;
}

static void points_prepare(Domain *d) {
    Points p[CM], *last = &p[point_arrays(d, p) - 1];
    int all = last->first + last->shared;
    d->leaving[0] = malloc(sizeof(int) * all);
    d->arriving[0] = malloc(sizeof(int) * all);
    for (int i = 0; i < d->kind; i++)
        shuffled(d->leaving[0] + p[i].first, d->arriving[0] + p[i].first, p[i].shared,
                 p[i].points, d->rank + 100 * i);
    exchange_lists(d, all, all);
}

/* Each list becomes an indexed block of points; two arrays a struct of those. */
static Place points_place(const Domain *d, const int *list) {
    int one_each[CM] = {1, 1};
    MPI_Aint displacements[CM];
    MPI_Datatype point, types[CM + 1], all;
    Points p[CM];
    int arrays = point_arrays(d, p);
    MPI_Type_contiguous(p[0].floats, MPI_FLOAT, &point);
    for (int i = 0; i < arrays; i++) {
        displacements[i] = p[i].at;
        MPI_Type_create_indexed_block(p[i].shared, 1, list + p[i].first, point, &types[i]);
    }
    MPI_Type_create_struct(arrays, one_each, displacements, types, &all);
    types[arrays] = point;
    return (Place){0, 1, finished(all, arrays + 1, types)};
}

static Place points_leaving(const Domain *d, int source, int target) {
    (void)target;
    return points_place(d, leaving_list(d, source));
}

static Place points_arriving(const Domain *d, int source, int target) {
    (void)source;
    return points_place(d, arriving_list(d, target));
}

static void points_pack(const Domain *d, int source, int target, const char *arrays, char *buffer) {
    const int *list = leaving_list(d, source);
    float *to = (float *)buffer;
    Points p[CM];
    (void)target;
    for (int i = 0, count = point_arrays(d, p); i < count; i++) {
        const float *from = (const float *)(arrays + p[i].at);
        for (int j = 0; j < p[i].shared; j++)
            for (int k = 0; k < p[i].floats; k++)
                *to++ = from[p[i].floats * list[p[i].first + j] + k];
    }
}

static void points_unpack(const Domain *d, int source, int target, char *arrays,
                          const char *buffer) {
    const int *list = arriving_list(d, target);
    const float *from = (const float *)buffer;
    Points p[CM];
    (void)source;
    for (int i = 0, count = point_arrays(d, p); i < count; i++) {
        float *to = (float *)(arrays + p[i].at);
        for (int j = 0; j < p[i].shared; j++)
            for (int k = 0; k < p[i].floats; k++)
                to[p[i].floats * list[p[i].first + j] + k] = *from++;
    }
}

const Pattern specfem_oc = {
    .name = "specfem_oc", .field = "seismic waves", .code = "SPECFEM3D",
    .kind = OC,
    .bytes = points_bytes, .prepare = points_prepare, .leaving = points_leaving,
    .arriving = points_arriving, .pack = points_pack, .unpack = points_unpack,
};
const Pattern specfem_cm = {
    .name = "specfem_cm", .field = "seismic waves", .code = "SPECFEM3D",
    .kind = CM,
    .bytes = points_bytes, .prepare = points_prepare, .leaving = points_leaving,
    .arriving = points_arriving, .pack = points_pack, .unpack = points_unpack,
};
