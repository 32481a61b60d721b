/* The 3-D FFT of the NAS Parallel Benchmarks: what the files of this folder share. */
#ifndef FT_H
#define FT_H

#include <complex.h>
#include <mpi.h>
#include <stddef.h>

typedef double complex Complex;

/* published.c: a class of the benchmark. ft_f.f90 declares the same type. */
#define ITERATIONS_MAX 20
typedef struct {
    int nx, ny, nz, iterations;
    double checksums[ITERATIONS_MAX][2]; /* of each iteration: real and imaginary part */
} Class;

const Class *ft_class(char letter); /* NULL if there is none */

/* problem.c: the mathematics. */
void fill_with_random(Complex *to, size_t first, size_t count);
void decay_factors(double *factors, int n, int t);
Complex checksum(const Complex *slab, const Class *class, int first_z, int end_z);

/* `n` planes over `ranks` ranks: the share of `rank` begins here, and ends where that of the next
 * one begins. Shares differ by one plane at most, so that any number of ranks works. */
static inline int first_of(int n, int rank, int ranks) {
    return (int)((long)n * rank / ranks);
}

/* exchange.c: from slabs of planes to slabs of rows. Before it, a rank has `my_planes` planes of
 * `rows` x `nx` elements. After it, it has `my_rows` rows of all planes, as
 * received[planes][my_rows][nx]: what one plane has for one rank is contiguous on both sides, so
 * that neither needs a derived datatype. */
typedef struct {
    int rank, ranks;
    int nx, rows, planes;   /* of the whole grid */
    int my_rows, my_planes; /* of this rank */
    Complex *slab;          /* the planes of this rank, or what is packed of them */
    Complex *one_plane;     /* where variants that pack compute a plane */
    Complex *received;      /* the memory of the window */
    MPI_Win window;
    int blocks, blocks_max; /* of planes, for the collectives */
    int *lists;             /* their arguments: 4 x ranks for each block */
    int requests_used;
    MPI_Request *requests;
} Exchange;

typedef struct {
    const char *name;
    void (*begin)(Exchange *);
    Complex *(*place)(Exchange *, int plane); /* where this plane is to be computed */
    void (*ready)(Exchange *, int plane);     /* it is there: it may be sent */
    void (*finish)(Exchange *);               /* returns when `received` is complete */
} Variant;

extern const Variant VARIANTS[]; /* the last one has no name */

#endif
