/* WRF, a weather model: one exchange takes the halos of many arrays along, so that it costs one
 * message or one put, not seven. The arrays have two, three and four dimensions:
 *
 *     float surface[y][x];   float air[z][y][x];   float species[species][z][y][x];
 *
 * A datatype for each array, and a struct of them. An array's type is a subarray (`sa`) or nested
 * vectors (`vec`). Both describe the same elements in the same order. */
#include "box.h"
#include "pattern.h"

enum { HALO = 3, SPECIES = 4, ARRAYS_2D = 2, ARRAYS_3D = 4, ARRAYS = ARRAYS_2D + ARRAYS_3D + 1 };

/* The kinds: the direction of the exchange, and the constructor. */
enum { X_SUBARRAYS, X_VECTORS, Y_SUBARRAYS, Y_VECTORS };

/* The boxes of all arrays that leave a rank or arrive there: HALO columns (x) or rows (y). They
 * leave from the end of the rank's own points, and arrive before their beginning. */
static void halo_boxes(const Domain *d, int is_arriving, Box boxes[ARRAYS]) {
    int is_x = d->kind == X_SUBARRAYS || d->kind == X_VECTORS;
    int edge = is_arriving ? 0 : d->n, side = d->n + 2 * HALO;
    size_t at = 0;
    for (int i = 0; i < ARRAYS; i++) {
        int levels = i < ARRAYS_2D ? 1 : d->n / 2;
        int species = i < ARRAYS_2D + ARRAYS_3D ? 1 : SPECIES;
        boxes[i] = (Box){
            .at = at,
            .element = sizeof(float),
            .array = {species, levels, side, side},
            .from = {0, 0, is_x ? HALO : edge, is_x ? edge : HALO},
            .count = {species, levels, is_x ? d->n : HALO, is_x ? HALO : d->n},
        };
        at += sizeof(float) * species * levels * side * side;
    }
}

static size_t bytes(const Domain *d) {
    Box boxes[ARRAYS], *last = &boxes[ARRAYS - 1];
    halo_boxes(d, 0, boxes);
    return last->at + sizeof(float) * last->array[0] * last->array[1] * last->array[2] *
                          last->array[3];
}

/* The displacement of a subarray's type is the array's start. */
static MPI_Datatype subarray(const Box *b, MPI_Aint *displacement) {
    MPI_Datatype type;
    *displacement = b->at;
    MPI_Type_create_subarray(4, b->array, b->count, b->from, MPI_ORDER_C, MPI_FLOAT, &type);
    return type;
}

/* Nested vectors begin with their first element, so the displacement is that of the box. The
 * strides of the outer ones are in bytes (hvector): that of rows is no multiple of a row's part. */
static MPI_Datatype nested_vectors(const Box *b, MPI_Aint *displacement) {
    MPI_Aint row = b->array[3] * sizeof(float), level = row * b->array[2];
    MPI_Datatype rows, levels, type;
    *displacement = box_at(b);
    MPI_Type_vector(b->count[2], b->count[3], b->array[3], MPI_FLOAT, &rows);
    MPI_Type_create_hvector(b->count[1], 1, level, rows, &levels);
    MPI_Type_create_hvector(b->count[0], 1, level * b->array[1], levels, &type);
    MPI_Type_free(&rows);
    MPI_Type_free(&levels);
    return type;
}

static Place halo(const Domain *d, int is_arriving) {
    int is_subarrays = d->kind == X_SUBARRAYS || d->kind == Y_SUBARRAYS, one_each[ARRAYS];
    Box boxes[ARRAYS];
    MPI_Aint displacements[ARRAYS];
    MPI_Datatype types[ARRAYS], all;
    halo_boxes(d, is_arriving, boxes);
    for (int i = 0; i < ARRAYS; i++) {
        one_each[i] = 1;
        types[i] = (is_subarrays ? subarray : nested_vectors)(&boxes[i], &displacements[i]);
    }
    MPI_Type_create_struct(ARRAYS, one_each, displacements, types, &all);
    return (Place){0, 1, finished(all, ARRAYS, types)};
}

static Place leaving(const Domain *d, int source, int target) {
    (void)source, (void)target; /* All ranks have arrays of one shape. */
    return halo(d, 0);
}

static Place arriving(const Domain *d, int source, int target) {
    (void)source, (void)target;
    return halo(d, 1);
}

static void pack(const Domain *d, int source, int target, const char *arrays, char *buffer) {
    Box boxes[ARRAYS];
    (void)source, (void)target;
    halo_boxes(d, 0, boxes);
    for (int i = 0; i < ARRAYS; i++) buffer = box_pack(&boxes[i], arrays, buffer);
}

static void unpack(const Domain *d, int source, int target, char *arrays, const char *buffer) {
    Box boxes[ARRAYS];
    (void)source, (void)target;
    halo_boxes(d, 1, boxes);
    for (int i = 0; i < ARRAYS; i++) buffer = box_unpack(&boxes[i], arrays, buffer);
}

#define WRF(NAME, KIND)                                                                           \
    const Pattern NAME = {.name = #NAME, .field = "weather", .code = "WRF", .kind = KIND,         \
                          .bytes = bytes, .leaving = leaving, .arriving = arriving, .pack = pack, \
                          .unpack = unpack}
WRF(wrf_x_sa, X_SUBARRAYS);
WRF(wrf_x_vec, X_VECTORS);
WRF(wrf_y_sa, Y_SUBARRAYS);
WRF(wrf_y_vec, Y_VECTORS);
