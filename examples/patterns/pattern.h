/* What a pattern is: elements that leave the arrays of one rank, and the places where they arrive
 * in the arrays of another one. */
#ifndef PATTERN_H
#define PATTERN_H

#include <mpi.h>
#include <stddef.h>

/* Elements in the arrays of one rank, as MPI_Put takes them for its origin and for its target:
 * `at` is the offset in bytes from the start of the arrays. The type is committed. */
typedef struct {
    MPI_Aint at;
    int count;
    MPI_Datatype type;
} Place;

/* What a rank knows. In patterns that are not all-to-all it sends to `next` and receives from
 * `previous`. */
typedef struct {
    int n; /* of --size */
    int rank, ranks, previous, next;
    int kind;                      /* of the row in the table: a direction, or which arrays */
    int *leaving[2], *arriving[2]; /* indices (lists.h): [0] of this rank, [1] of its neighbour */
} Domain;

/* Elements leave the arrays of rank `source` for those of rank `target`. A rank is the source or the
 * target of all pairs that it asks for, since it may know the indices of its neighbours only. */
typedef struct {
    const char *name, *field, *code;
    int kind;
    int is_all_to_all; /* each rank sends to all ranks; otherwise only to the next one */
    int is_new;        /* the elements are others each time, so the datatypes are built each time */

    size_t (*bytes)(const Domain *); /* of all arrays of a rank */
    void (*prepare)(Domain *);       /* exchanges indices; NULL: there are none */
    Place (*leaving)(const Domain *, int source, int target);
    Place (*arriving)(const Domain *, int source, int target);

    /* The same by hand: between the arrays and a contiguous buffer. */
    void (*pack)(const Domain *, int source, int target, const char *arrays, char *buffer);
    void (*unpack)(const Domain *, int source, int target, char *arrays, const char *buffer);
} Pattern;

extern const Pattern wrf_x_sa, wrf_x_vec, wrf_y_sa, wrf_y_vec;     /* weather.c */
extern const Pattern milc_su3_zdown, nas_lu_x, nas_lu_y;           /* grids.c */
extern const Pattern nas_mg_x, nas_mg_y, nas_mg_z;
extern const Pattern multigrid_restrict, matrix_patch;
extern const Pattern lammps_atomic, lammps_full;                   /* atoms.c */
extern const Pattern specfem_oc, specfem_cm;                       /* seismic.c */
extern const Pattern particles;                                    /* particles.c */
extern const Pattern fft_2d, specfem_mt;                           /* transposes.c */

/* Frees the types on the way to `type`, and commits it. MPI keeps a type that is freed as long as
 * another one is made of it (MPI-4.1 §5.1.9). */
static inline MPI_Datatype finished(MPI_Datatype type, int inner_types, MPI_Datatype inner[]) {
    for (int i = 0; i < inner_types; i++) MPI_Type_free(&inner[i]);
    MPI_Type_commit(&type);
    return type;
}

#endif
