/* The 3-D FFT of the NAS Parallel Benchmarks, with slabs: a rank transforms its planes in two
 * dimensions, all ranks exchange what they have for each other, and each transforms its rows in the
 * third. Section 4.3 of the paper foMPI (SC13) overlaps the exchange with the transforms of the
 * planes: exchange.c has the ways to do that. */
#include "ft.h"

#include <fftw3.h>
#include <math.h>

#include "../example.h"

/* One direction: the forward transform has planes of z and rows of y, the inverse one planes of y
 * and rows of z. The FFT across planes writes its result as planes of the other direction. */
typedef struct {
    Exchange exchange;
    Complex *result;
    fftw_plan in_plane, across_planes; /* NULL: this rank has none */
} Direction;

typedef struct {
    const Class *class;
    int iterations, first_y, first_z;
    Complex *waves, *slab;     /* the spectrum; planes that are sent, and the result in space */
    double *fx, *fy, *fz;      /* decay_factors */
    MPI_Win window;
    Direction forward, inverse;
} Ft;

static void *allocate(size_t bytes) {
    void *memory = fftw_malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        fprintf(stderr, "ft: no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

/* Measuring plans overwrite the memory, so they are made before there are data. */
static void plan(Direction *d, int sign) {
    Exchange *x = &d->exchange;
    int nx = x->nx, n = x->planes;
    if (x->my_planes > 0)
        d->in_plane = fftw_plan_dft_2d(x->rows, nx, x->slab, x->slab, sign, FFTW_MEASURE);
    if (x->my_rows > 0)
        d->across_planes = fftw_plan_many_dft(1, &n, nx, d->result, NULL, nx, 1, d->result, NULL,
                                              nx, 1, sign, FFTW_MEASURE);
}

static Exchange exchange_of(int nx, int rows, int planes, int blocks) {
    Exchange x = {.nx = nx, .rows = rows, .planes = planes, .blocks_max = blocks};
    MPI_Comm_rank(MPI_COMM_WORLD, &x.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &x.ranks);
    x.my_rows = first_of(rows, x.rank + 1, x.ranks) - first_of(rows, x.rank, x.ranks);
    x.my_planes = first_of(planes, x.rank + 1, x.ranks) - first_of(planes, x.rank, x.ranks);
    int messages = planes + x.my_planes * x.ranks;
    x.requests = allocate(sizeof(MPI_Request) * (messages > blocks ? messages : blocks));
    x.lists = allocate(sizeof(int) * 4 * x.ranks * blocks);
    return x;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static void begin(Ft *ft, const Class *class, int blocks) {
    int nx = class->nx, ny = class->ny, nz = class->nz;
    Exchange f = exchange_of(nx, ny, nz, blocks), i = exchange_of(nx, nz, ny, blocks);
    ft->class = class;
    ft->first_y = first_of(ny, f.rank, f.ranks);
    ft->first_z = first_of(nz, f.rank, f.ranks);
    /* Slabs of z and of y can differ in size. */
    size_t sent = larger((size_t)f.my_planes * ny, (size_t)i.my_planes * nz) * nx;
    size_t received = larger((size_t)nz * f.my_rows, (size_t)ny * i.my_rows) * nx;
    ft->waves = allocate(sizeof(Complex) * sent);
    ft->slab = f.slab = i.slab = allocate(sizeof(Complex) * sent);
    f.one_plane = i.one_plane = allocate(sizeof(Complex) * nx * larger(ny, nz));
    MPI_Win_allocate(sizeof(Complex) * received, sizeof(Complex), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &f.received, &ft->window);
    i.received = f.received;
    f.window = i.window = ft->window;
    ft->forward.exchange = f, ft->forward.result = ft->waves;
    ft->inverse.exchange = i, ft->inverse.result = ft->slab;
    ft->fx = allocate(sizeof(double) * nx);
    ft->fy = allocate(sizeof(double) * ny);
    ft->fz = allocate(sizeof(double) * nz);
    plan(&ft->forward, FFTW_FORWARD);
    plan(&ft->inverse, FFTW_BACKWARD);
}

static void end(Ft *ft) {
    Direction *both[] = {&ft->forward, &ft->inverse};
    for (int i = 0; i < 2; i++) {
        fftw_destroy_plan(both[i]->in_plane);
        fftw_destroy_plan(both[i]->across_planes);
        fftw_free(both[i]->exchange.requests);
        fftw_free(both[i]->exchange.lists);
    }
    MPI_Win_free(&ft->window);
    fftw_free(ft->forward.exchange.one_plane);
    fftw_free(ft->waves), fftw_free(ft->slab);
    fftw_free(ft->fx), fftw_free(ft->fy), fftw_free(ft->fz);
}

/* Writes plane `y` of the spectrum at time t to `to`: [nz][nx]. */
static void decay(const Ft *ft, int y, Complex *to) {
    int nx = ft->class->nx, nz = ft->class->nz;
    const Complex *from = ft->waves + (size_t)y * nz * nx;
    for (int z = 0; z < nz; z++)
        for (int x = 0; x < nx; x++) {
            size_t at = (size_t)z * nx + x;
            to[at] = from[at] * (ft->fx[x] * (ft->fy[ft->first_y + y] * ft->fz[z]));
        }
}

/* Copies a row of all planes, as far apart as they were received, to one place in the cache: an FFT
 * of numbers that are a large power of two apart takes several times as long. */
static void collect_row(const Exchange *x, int row, Complex *to) {
    for (int plane = 0; plane < x->planes; plane++)
        memcpy(to + (size_t)plane * x->nx, x->received + ((size_t)plane * x->my_rows + row) * x->nx,
               sizeof(Complex) * x->nx);
}

/* Transforms the planes, sends each one as soon as it is ready, and then transforms across them.
 * Returns the seconds in calls of the exchange, packing included. */
static double transform(Ft *ft, Direction *d, const Variant *variant) {
    Exchange *x = &d->exchange;
    size_t elements = (size_t)x->rows * x->nx;
    double began = MPI_Wtime(), exchanged;
    variant->begin(x);
    exchanged = MPI_Wtime() - began;
    for (int plane = 0; plane < x->my_planes; plane++) {
        Complex *place = variant->place(x, plane);
        if (d == &ft->inverse) decay(ft, plane, place);
        else memcpy(place, ft->waves + plane * elements, sizeof(Complex) * elements);
        fftw_execute_dft(d->in_plane, place, place);
        began = MPI_Wtime();
        variant->ready(x, plane);
        exchanged += MPI_Wtime() - began;
    }
    began = MPI_Wtime();
    variant->finish(x);
    exchanged += MPI_Wtime() - began;
    for (int row = 0; row < x->my_rows; row++) {
        Complex *to = d->result + (size_t)row * x->planes * x->nx;
        collect_row(x, row, to);
        fftw_execute_dft(d->across_planes, to, to);
    }
    return exchanged;
}

/* `total` is the first: rounds are sorted by it. */
typedef struct {
    double total, exchanged;
} Seconds;

/* One run of the benchmark: the grid, its spectrum, and the state and the checksum at each time. */
static Seconds run(Ft *ft, const Variant *variant, Complex *sums) {
    const Class *class = ft->class;
    Exchange *f = &ft->forward.exchange;
    size_t plane = (size_t)class->nx * class->ny;
    fill_with_random(ft->waves, ft->first_z * plane, f->my_planes * plane);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    double exchanged = transform(ft, &ft->forward, variant);
    for (int t = 1; t <= ft->iterations; t++) {
        decay_factors(ft->fx, class->nx, t);
        decay_factors(ft->fy, class->ny, t);
        decay_factors(ft->fz, class->nz, t);
        exchanged += transform(ft, &ft->inverse, variant);
        sums[t - 1] = checksum(ft->slab, class, ft->first_z, ft->first_z + f->my_planes);
        example_progress("%s: iteration %d of %d", variant->name, t, ft->iterations);
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, ft->iterations, MPI_C_DOUBLE_COMPLEX, MPI_SUM,
                  MPI_COMM_WORLD);
    double mine[] = {MPI_Wtime() - began, exchanged}, largest[2];
    MPI_Allreduce(mine, largest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (Seconds){largest[0], largest[1]};
}

/* The largest relative difference from the published checksums. */
static double error_of(const Ft *ft, const Complex *sums) {
    double largest = 0;
    for (int t = 0; t < ft->iterations; t++) {
        const double *published = ft->class->checksums[t];
        double parts[] = {creal(sums[t]), cimag(sums[t])};
        for (int i = 0; i < 2; i++) {
            double error = fabs((parts[i] - published[i]) / published[i]);
            if (!(error <= largest)) largest = error; /* also where it is no number */
        }
    }
    return largest;
}

static int by_total(const void *a, const void *b) {
    double left = ((const Seconds *)a)->total, right = ((const Seconds *)b)->total;
    return (left > right) - (left < right);
}

/* Returns whether all checksums are right, of each round. */
static int measure(Ft *ft, const Variant *variant, int rounds) {
    Complex sums[ITERATIONS_MAX];
    Seconds *seconds = allocate(sizeof(Seconds) * rounds);
    double error = 0;
    for (int round = 0; round < rounds; round++) {
        seconds[round] = run(ft, variant, sums);
        double now = error_of(ft, sums);
        if (!(now <= error)) error = now;
    }
    qsort(seconds, rounds, sizeof(Seconds), by_total);
    Seconds median = seconds[rounds / 2];
    fftw_free(seconds);
    return example_result("ft", variant->name, median.total, error <= 1e-12,
                          "nx=%d ny=%d nz=%d iterations=%d exchange_seconds=%.9f error=%.1e",
                          ft->class->nx, ft->class->ny, ft->class->nz, ft->iterations,
                          median.exchanged, error);
}

static void refuse(const char *option, const char *value, const char *why) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) fprintf(stderr, "--%s %s: %s\n", option, value, why);
    MPI_Finalize();
    exit(2);
}

int main(int argc, char **argv) {
    Option options[] = {
        {"class", "S", "size of the grid: S 64x64x64, W 128x128x32, A 256x256x128, B 512x256x256"},
        {"variant", "all", "messages, alltoall, ialltoall, onesided"},
        {"iterations", "0", "steps in time; 0: as many as the class has, 6 or 20"},
        {"blocks", "8", "ialltoall sends the planes in this number of blocks"},
        {"rounds", "3", "runs of each variant, of which the median is printed"},
        {NULL, NULL, NULL},
    };
    example_begin(&argc, &argv, "The 3-D FFT of the NAS Parallel Benchmarks.", options);
    const char *letter = option_text(options, "class");
    const Class *class = strlen(letter) == 1 ? ft_class(letter[0]) : NULL;
    if (class == NULL) refuse("class", letter, "not one of S, W, A and B");
    Ft ft = {.iterations = (int)option_number(options, "iterations", 0)};
    if (ft.iterations > class->iterations)
        refuse("iterations", option_text(options, "iterations"), "more than the class has");
    if (ft.iterations == 0) ft.iterations = class->iterations;
    int rounds = (int)option_number(options, "rounds", 1), is_verified = 1, ran = 0;

    begin(&ft, class, (int)option_number(options, "blocks", 1));
    for (const Variant *variant = VARIANTS; variant->name != NULL; variant++) {
        if (!option_has_variant(options, variant->name)) continue;
        is_verified &= measure(&ft, variant, rounds);
        ran++;
    }
    end(&ft);
    if (ran == 0) refuse("variant", option_text(options, "variant"), "no such variant");
    return example_end(is_verified);
}
