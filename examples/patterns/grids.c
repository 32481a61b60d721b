/* Faces and parts of regular grids: lattice QCD, two NAS kernels, a multigrid restriction, and a
 * patch of a distributed matrix. By hand most of them are packed as boxes (box.h); the datatypes
 * are built here, each by the constructor that suits its layout. */
#include "box.h"
#include "pattern.h"

#define DOUBLE sizeof(double)

/* NAS MG: a cube of doubles with a halo of one, `double u[n + 2][n + 2][n + 2]` in the order z, y,
 * x. The kind is the direction of the exchange, and the dimension in which the face is thin. */
enum { X = 3, Y = 2, Z = 1 };

static Box mg_face(const Domain *d, int is_arriving) {
    int side = d->n + 2;
    Box face = {0, DOUBLE, {1, side, side, side}, {0, 1, 1, 1}, {1, d->n, d->n, d->n}};
    face.from[d->kind] = is_arriving ? 0 : d->n;
    face.count[d->kind] = 1;
    return face;
}

static size_t mg_bytes(const Domain *d) { return DOUBLE * (d->n + 2) * (d->n + 2) * (d->n + 2); }

/* x: each element is alone; a vector for a plane's column and a vector of those. y and z: a vector
 * of rows. Only `at` differs between the two sides, so the type is one for both. */
static Place mg_place(const Domain *d, int is_arriving) {
    int n = d->n, row = n + 2, plane = row * row;
    Box face = mg_face(d, is_arriving);
    MPI_Datatype type, column;
    if (d->kind == X) {
        MPI_Type_vector(n, 1, row, MPI_DOUBLE, &column);
        MPI_Type_create_hvector(n, 1, DOUBLE * plane, column, &type);
    } else {
        MPI_Type_vector(n, n, d->kind == Y ? plane : row, MPI_DOUBLE, &type);
    }
    return (Place){box_at(&face), 1, finished(type, d->kind == X, &column)};
}

/* NAS LU: one plane of `double u[n + 2][n + 2][5]`, in the order y, x, of a grid that the ranks
 * work through plane by plane. In x direction a row leaves, in y direction a column. (LU's
 * names of the two: its x exchange sends contiguous data.) */
enum { LU_ROW, LU_COLUMN };

static Box lu_edge(const Domain *d, int is_arriving) {
    int side = d->n + 2, edge = is_arriving ? 0 : d->n, is_row = d->kind == LU_ROW;
    return (Box){0, 5 * DOUBLE, {1, 1, side, side},
                 {0, 0, is_row ? edge : 1, is_row ? 1 : edge},
                 {1, 1, is_row ? 1 : d->n, is_row ? d->n : 1}};
}

static size_t lu_bytes(const Domain *d) { return 5 * DOUBLE * (d->n + 2) * (d->n + 2); }

/* A row is contiguous: a count and a basic type are enough. */
static Place lu_place(const Domain *d, int is_arriving) {
    Box edge = lu_edge(d, is_arriving);
    MPI_Datatype column;
    if (d->kind == LU_ROW)
        MPI_Type_contiguous(5 * d->n, MPI_DOUBLE, &column);
    else
        MPI_Type_vector(d->n, 5, 5 * (d->n + 2), MPI_DOUBLE, &column);
    return (Place){box_at(&edge), 1, finished(column, 0, NULL)};
}

/* MILC: a 4-D lattice of L = n / 2 sites in each direction, with an SU(3) vector (three complex
 * floats) at each. All even sites are stored before all odd ones; in each half the order is t, z,
 * y, x: `float v[2][t][z][y * x / 2][6]`. The sites with z = 0 leave, for a contiguous buffer
 * after the lattice. */
static Box milc_face(const Domain *d, int is_arriving) {
    int l = d->n / 2, sites = l * l / 2;
    size_t site = 6 * sizeof(float);
    if (is_arriving)
        return (Box){site * l * l * l * l, site, {1, 1, 2 * l, sites}, {0}, {1, 1, 2 * l, sites}};
    return (Box){0, site, {2, l, l, sites}, {0}, {2, l, 1, sites}};
}

static size_t milc_bytes(const Domain *d) {
    size_t l = d->n / 2;
    return 6 * sizeof(float) * (l * l * l * l + l * l * l);
}

/* A vector over t, whose blocks are the sites of a plane; and a vector of the two halves. */
static Place milc_leaving(const Domain *d, int source, int target) {
    int l = d->n / 2, sites = l * l / 2;
    MPI_Aint half = (MPI_Aint)6 * sizeof(float) * sites * l * l;
    MPI_Datatype inner[2], type; /* a site, the face of one half */
    (void)source, (void)target;
    MPI_Type_contiguous(6, MPI_FLOAT, &inner[0]);
    MPI_Type_vector(l, sites, l * sites, inner[0], &inner[1]);
    MPI_Type_create_hvector(2, 1, half, inner[1], &type);
    return (Place){0, 1, finished(type, 2, inner)};
}

static Place milc_arriving(const Domain *d, int source, int target) {
    int l = d->n / 2;
    MPI_Datatype site;
    Box face = milc_face(d, 1);
    (void)source, (void)target;
    MPI_Type_contiguous(6, MPI_FLOAT, &site);
    return (Place){box_at(&face), l * l * l, finished(site, 0, NULL)};
}

/* Multigrid: every second point of the fine grid, in each dimension, goes to the coarse grid, of
 * which one rank takes the parts of up to eight: `double fine[n][n][n], coarse[n][n][n]`. */
static size_t restrict_bytes(const Domain *d) { return 2 * DOUBLE * d->n * d->n * d->n; }

/* A vector with stride 2 for x, around it vectors with twice the stride of a row and of a plane. */
static Place restrict_leaving(const Domain *d, int source, int target) {
    int n = d->n, half = n / 2;
    MPI_Datatype inner[2], type;
    (void)source, (void)target;
    MPI_Type_vector(half, 1, 2, MPI_DOUBLE, &inner[0]);
    MPI_Type_create_hvector(half, 1, 2 * DOUBLE * n, inner[0], &inner[1]);
    MPI_Type_create_hvector(half, 1, 2 * DOUBLE * n * n, inner[1], &type);
    return (Place){0, 1, finished(type, 2, inner)};
}

/* The part's place depends on the source: its bits are the position in z, y and x. */
static Box restrict_part(const Domain *d, int source) {
    int n = d->n, half = n / 2;
    return (Box){restrict_bytes(d) / 2, DOUBLE, {1, n, n, n},
                 {0, (source >> 2 & 1) * half, (source >> 1 & 1) * half, (source & 1) * half},
                 {1, half, half, half}};
}

static Place restrict_arriving(const Domain *d, int source, int target) {
    Box part = restrict_part(d, source);
    MPI_Datatype type;
    (void)target;
    MPI_Type_create_subarray(3, part.array + 1, part.count + 1, part.from + 1, MPI_ORDER_C,
                             MPI_DOUBLE, &type);
    return (Place){part.at, 1, finished(type, 0, NULL)};
}

static void restrict_pack(const Domain *d, int source, int target, const char *arrays,
                          char *buffer) {
    const double *fine = (const double *)arrays;
    double *to = (double *)buffer;
    size_t n = d->n;
    (void)source, (void)target;
    for (size_t z = 0; z < n; z += 2)
        for (size_t y = 0; y < n; y += 2)
            for (size_t x = 0; x < n; x += 2) *to++ = fine[(z * n + y) * n + x];
}

static void restrict_unpack(const Domain *d, int source, int target, char *arrays,
                            const char *buffer) {
    Box part = restrict_part(d, source);
    (void)target;
    box_unpack(&part, arrays, buffer);
}

/* A patch of a distributed matrix, as quantum chemistry fetches it: n x n elements of a rank's
 * block of 4n x 4n, for a contiguous buffer after the block. */
static Box patch_box(const Domain *d, int is_arriving) {
    int n = d->n, side = 4 * n;
    if (is_arriving)
        return (Box){DOUBLE * side * side, DOUBLE, {1, 1, n, n}, {0}, {1, 1, n, n}};
    return (Box){0, DOUBLE, {1, 1, side, side}, {0, 0, n, n / 2}, {1, 1, n, n}};
}

static size_t patch_bytes(const Domain *d) { return DOUBLE * 17 * d->n * d->n; }

static Place patch_place(const Domain *d, int is_arriving) {
    Box patch = patch_box(d, is_arriving);
    MPI_Datatype rows;
    if (is_arriving)
        MPI_Type_contiguous(d->n * d->n, MPI_DOUBLE, &rows);
    else
        MPI_Type_vector(d->n, d->n, 4 * d->n, MPI_DOUBLE, &rows);
    return (Place){box_at(&patch), 1, finished(rows, 0, NULL)};
}

/* The functions of a pattern whose two sides are boxes that do not depend on the ranks. */
#define PACKED_AS_BOX(NAME, BOX)                                                                  \
    static void NAME##_pack(const Domain *d, int source, int target, const char *arrays,          \
                            char *buffer) {                                                       \
        Box box = BOX(d, 0);                                                                      \
        (void)source, (void)target;                                                               \
        box_pack(&box, arrays, buffer);                                                           \
    }                                                                                             \
    static void NAME##_unpack(const Domain *d, int source, int target, char *arrays,              \
                              const char *buffer) {                                               \
        Box box = BOX(d, 1);                                                                      \
        (void)source, (void)target;                                                               \
        box_unpack(&box, arrays, buffer);                                                         \
    }
#define PLACES(NAME)                                                                              \
    static Place NAME##_leaving(const Domain *d, int source, int target) {                        \
        (void)source, (void)target;                                                               \
        return NAME##_place(d, 0);                                                                \
    }                                                                                             \
    static Place NAME##_arriving(const Domain *d, int source, int target) {                       \
        (void)source, (void)target;                                                               \
        return NAME##_place(d, 1);                                                                \
    }
PACKED_AS_BOX(mg, mg_face)
PLACES(mg)
PACKED_AS_BOX(lu, lu_edge)
PLACES(lu)
PACKED_AS_BOX(milc, milc_face)
PACKED_AS_BOX(patch, patch_box)
PLACES(patch)

#define PATTERN(NAME, FIELD, CODE, KIND, PREFIX)                                                  \
    const Pattern NAME = {.name = #NAME, .field = FIELD, .code = CODE, .kind = KIND,              \
                          .bytes = PREFIX##_bytes, .leaving = PREFIX##_leaving,                   \
                          .arriving = PREFIX##_arriving, .pack = PREFIX##_pack,                   \
                          .unpack = PREFIX##_unpack}
PATTERN(nas_mg_x, "fluid dynamics", "NAS MG", X, mg);
PATTERN(nas_mg_y, "fluid dynamics", "NAS MG", Y, mg);
PATTERN(nas_mg_z, "fluid dynamics", "NAS MG", Z, mg);
PATTERN(nas_lu_x, "fluid dynamics", "NAS LU", LU_ROW, lu);
PATTERN(nas_lu_y, "fluid dynamics", "NAS LU", LU_COLUMN, lu);
PATTERN(milc_su3_zdown, "lattice QCD", "MILC", 0, milc);
PATTERN(multigrid_restrict, "multigrid", "geometric multigrid", 0, restrict);
PATTERN(matrix_patch, "quantum chemistry", "Global Arrays", 0, patch);
