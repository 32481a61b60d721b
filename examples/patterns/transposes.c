/* Transposes of arrays that are distributed over all ranks: each rank sends one block to each rank.
 * The origin's type takes the block out of the rows, the target's type sorts its elements into the
 * transposed array. So the put does the transpose, and no rank touches the data. */
#include <complex.h>
#include <string.h>
#include "pattern.h"

#define COMPLEX sizeof(double complex)

/* The 2-D FFT. With R = n rows a rank and N = R * ranks columns:
 *
 *     double complex a[R][N], b[R][N];   a[i][target * R + j] of the source
 *                                     -> b[j][source * R + i] of the target
 */
static size_t fft_bytes(const Domain *d) { return 2 * COMPLEX * d->n * d->n * d->ranks; }

/* R rows of R elements, row by row. */
static Place fft_leaving(const Domain *d, int source, int target) {
    MPI_Datatype block;
    (void)source;
    MPI_Type_vector(d->n, d->n, d->n * d->ranks, MPI_C_DOUBLE_COMPLEX, &block);
    return (Place){COMPLEX * target * d->n, 1, finished(block, 0, NULL)};
}

/* A row of the origin becomes a column here. The column is resized to the extent of an element, so
 * that the next column begins one element further: a count of R is R columns side by side. */
static Place fft_arriving(const Domain *d, int source, int target) {
    MPI_Datatype column, resized;
    (void)target;
    MPI_Type_vector(d->n, 1, d->n * d->ranks, MPI_C_DOUBLE_COMPLEX, &column);
    MPI_Type_create_resized(column, 0, COMPLEX, &resized);
    MPI_Aint b = fft_bytes(d) / 2;
    return (Place){b + COMPLEX * source * d->n, d->n, finished(resized, 1, &column)};
}

static void fft_pack(const Domain *d, int source, int target, const char *arrays, char *buffer) {
    const double complex *a = (const double complex *)arrays + (size_t)target * d->n;
    double complex *to = (double complex *)buffer;
    (void)source;
    for (int i = 0; i < d->n; i++)
        for (int j = 0; j < d->n; j++) *to++ = a[(size_t)i * d->n * d->ranks + j];
}

static void fft_unpack(const Domain *d, int source, int target, char *arrays, const char *buffer) {
    double complex *b = (double complex *)(arrays + fft_bytes(d) / 2) + (size_t)source * d->n;
    const double complex *from = (const double complex *)buffer;
    (void)target;
    for (int i = 0; i < d->n; i++)
        for (int j = 0; j < d->n; j++) b[(size_t)j * d->n * d->ranks + i] = *from++;
}

/* SPECFEM3D: the two outer dimensions of a 3-D array change places; rows of n floats stay whole.
 * With R = n / 2 planes a rank and N = R * ranks:
 *
 *     float a[R][N][n], b[R][N][n];      a[i][target * R + j][0..n] of the source
 *                                     -> b[j][source * R + i][0..n] of the target
 */
static size_t mt_bytes(const Domain *d) {
    return 2 * sizeof(float) * d->n * (d->n / 2) * (d->n / 2) * d->ranks;
}

static Place mt_leaving(const Domain *d, int source, int target) {
    int planes = d->n / 2, row = d->n;
    MPI_Datatype block;
    (void)source;
    MPI_Type_vector(planes, planes * row, planes * d->ranks * row, MPI_FLOAT, &block);
    return (Place){sizeof(float) * target * planes * row, 1, finished(block, 0, NULL)};
}

/* As fft_arriving; what is sorted are rows. */
static Place mt_arriving(const Domain *d, int source, int target) {
    int planes = d->n / 2, row = d->n;
    MPI_Datatype column, resized;
    (void)target;
    MPI_Type_vector(planes, row, planes * d->ranks * row, MPI_FLOAT, &column);
    MPI_Type_create_resized(column, 0, sizeof(float) * row, &resized);
    MPI_Aint first = mt_bytes(d) / 2 + sizeof(float) * source * planes * row;
    return (Place){first, planes, finished(resized, 1, &column)};
}

static void mt_pack(const Domain *d, int source, int target, const char *arrays, char *buffer) {
    size_t planes = d->n / 2, row = d->n * sizeof(float);
    (void)source;
    for (size_t i = 0; i < planes; i++, buffer += planes * row)
        memcpy(buffer, arrays + (i * planes * d->ranks + target * planes) * row, planes * row);
}

static void mt_unpack(const Domain *d, int source, int target, char *arrays, const char *buffer) {
    size_t planes = d->n / 2, row = d->n * sizeof(float);
    char *b = arrays + mt_bytes(d) / 2;
    (void)target;
    for (size_t i = 0; i < planes; i++)
        for (size_t j = 0; j < planes; j++, buffer += row)
            memcpy(b + (j * planes * d->ranks + source * planes + i) * row, buffer, row);
}

const Pattern fft_2d = {
    .name = "fft_2d", .field = "signal processing", .code = "2-D FFT", .is_all_to_all = 1,
    .bytes = fft_bytes, .leaving = fft_leaving, .arriving = fft_arriving,
    .pack = fft_pack, .unpack = fft_unpack,
};
const Pattern specfem_mt = {
    .name = "specfem_mt", .field = "seismic waves", .code = "SPECFEM3D", .is_all_to_all = 1,
    .bytes = mt_bytes, .leaving = mt_leaving, .arriving = mt_arriving,
    .pack = mt_pack, .unpack = mt_unpack,
};
