/* LAMMPS, molecular dynamics: atoms near the border are copied to the neighbour, where they are
 * ghosts after its own atoms. An atom's data are in several arrays; all are indexed by one list.
 * The kind is the number of arrays: `atomic` has the first four, `full` all. */
#include "lists.h"
#include <stdlib.h>
#include <string.h>

enum { ATOMIC = 4, FULL = 6 };

typedef struct {
    MPI_Aint at; /* of the array */
    int doubles, ints;
} AtomArray;

static int ghosts(const Domain *d) { return d->n * d->n; }
static int own_atoms(const Domain *d) { return 4 * ghosts(d); }

static void atom_arrays(const Domain *d, AtomArray a[FULL]) {
    static const AtomArray shape[FULL] = {
        {0, 3, 0} /* x */, {0, 0, 1} /* tag */,      {0, 0, 1} /* type */,
        {0, 0, 1} /* mask */, {0, 1, 0} /* charge */, {0, 0, 1} /* molecule */};
    MPI_Aint at = 0, atoms = own_atoms(d) + ghosts(d);
    for (int i = 0; i < FULL; i++) {
        a[i] = shape[i];
        a[i].at = at;
        at += atoms * (a[i].doubles * sizeof(double) + a[i].ints * sizeof(int));
    }
}

static size_t atoms_bytes(const Domain *d) {
    return (size_t)(own_atoms(d) + ghosts(d)) * (4 * sizeof(double) + 4 * sizeof(int));
}

static void atoms_prepare(Domain *d) {
    d->leaving[0] = malloc(sizeof(int) * ghosts(d));
    ascending(d->leaving[0], ghosts(d), d->rank);
    exchange_lists(d, ghosts(d), 0);
}

/* For each array an indexed block of its elements (a position is three doubles), and a struct of
 * them. The indices count elements, so the list serves all arrays as it is. */
static Place atoms_leaving(const Domain *d, int source, int target) {
    AtomArray a[FULL];
    int one_each[FULL] = {1, 1, 1, 1, 1, 1};
    MPI_Aint displacements[FULL];
    MPI_Datatype position, types[FULL + 1], all;
    (void)target;
    atom_arrays(d, a);
    MPI_Type_contiguous(3, MPI_DOUBLE, &position);
    for (int i = 0; i < d->kind; i++) {
        MPI_Datatype element = a[i].doubles == 3 ? position : a[i].ints ? MPI_INT : MPI_DOUBLE;
        displacements[i] = a[i].at;
        MPI_Type_create_indexed_block(ghosts(d), 1, leaving_list(d, source), element, &types[i]);
    }
    MPI_Type_create_struct(d->kind, one_each, displacements, types, &all);
    types[d->kind] = position;
    return (Place){0, 1, finished(all, d->kind + 1, types)};
}

/* Ghosts are contiguous in each array: blocks of basic types. */
static Place atoms_arriving(const Domain *d, int source, int target) {
    AtomArray a[FULL];
    int lengths[FULL];
    MPI_Aint displacements[FULL];
    MPI_Datatype types[FULL], all;
    (void)source, (void)target;
    atom_arrays(d, a);
    for (int i = 0; i < d->kind; i++) {
        size_t element = a[i].doubles * sizeof(double) + a[i].ints * sizeof(int);
        types[i] = a[i].ints ? MPI_INT : MPI_DOUBLE;
        lengths[i] = ghosts(d) * (a[i].doubles + a[i].ints);
        displacements[i] = a[i].at + own_atoms(d) * element;
    }
    MPI_Type_create_struct(d->kind, lengths, displacements, types, &all);
    return (Place){0, 1, finished(all, 0, NULL)};
}

static void atoms_pack(const Domain *d, int source, int target, const char *arrays, char *buffer) {
    const int *list = leaving_list(d, source), atoms = ghosts(d);
    AtomArray a[FULL];
    (void)target;
    atom_arrays(d, a);
    for (int i = 0; i < d->kind; i++) {
        const double *doubles = (const double *)(arrays + a[i].at);
        const int *ints = (const int *)(arrays + a[i].at);
        double *to = (double *)buffer;
        int *ints_to = (int *)buffer;
        for (int j = 0; j < atoms && a[i].doubles == 3; j++, to += 3)
            memcpy(to, doubles + 3 * list[j], 3 * sizeof(double));
        for (int j = 0; j < atoms && a[i].doubles == 1; j++) *to++ = doubles[list[j]];
        for (int j = 0; j < atoms && a[i].ints == 1; j++) *ints_to++ = ints[list[j]];
        buffer += atoms * (a[i].doubles * sizeof(double) + a[i].ints * sizeof(int));
    }
}

static void atoms_unpack(const Domain *d, int source, int target, char *arrays,
                         const char *buffer) {
    AtomArray a[FULL];
    (void)source, (void)target;
    atom_arrays(d, a);
    for (int i = 0; i < d->kind; i++) {
        size_t element = a[i].doubles * sizeof(double) + a[i].ints * sizeof(int);
        memcpy(arrays + a[i].at + own_atoms(d) * element, buffer, ghosts(d) * element);
        buffer += ghosts(d) * element;
    }
}

const Pattern lammps_atomic = {
    .name = "lammps_atomic", .field = "molecular dynamics", .code = "LAMMPS",
    .kind = ATOMIC,
    .bytes = atoms_bytes, .prepare = atoms_prepare, .leaving = atoms_leaving,
    .arriving = atoms_arriving, .pack = atoms_pack, .unpack = atoms_unpack,
};
const Pattern lammps_full = {
    .name = "lammps_full", .field = "molecular dynamics", .code = "LAMMPS",
    .kind = FULL,
    .bytes = atoms_bytes, .prepare = atoms_prepare, .leaving = atoms_leaving,
    .arriving = atoms_arriving, .pack = atoms_pack, .unpack = atoms_unpack,
};
