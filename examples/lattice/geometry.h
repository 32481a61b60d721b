/* A four-dimensional periodic lattice. Each rank has a box of it.
 *
 * A field has one Vector per site of the rank and, after the sites, the ghosts: copies of the
 * neighbours' sites next to the border. The even sites come first, then the odd ones (a site is
 * even if the sum of its coordinates is); in each half x counts fastest and t slowest. All local
 * extents are even, so that the boxes of all ranks are equal and a site has the same parity in the
 * box as in the lattice.
 *
 * A direction is 0 to 3 for +x, +y, +z, +t and 4 to 7 for -x, -y, -z, -t. */
#ifndef GEOMETRY_H
#define GEOMETRY_H

#include <mpi.h>
#include <stdint.h>

enum { DIMENSIONS = 4, DIRECTIONS = 8, EVEN = 0, ODD = 1 };

typedef struct {
    MPI_Comm comm; /* the ranks as a four-dimensional torus */
    int global[DIMENSIONS], local[DIMENSIONS], grid[DIMENSIONS];
    int origin[DIMENSIONS]; /* coordinates of the first site of this rank */
    int sites;              /* of this rank */
    int field_sites;        /* sites and ghosts */
    /* The rank next to this one, or -1 where the lattice is not divided and the site beyond the
     * border is one of this rank's own. */
    int neighbour[DIRECTIONS];
    int (*next)[DIRECTIONS]; /* where a field has the next site: an own one or a ghost */
    /* For each parity and direction: */
    int face_sites[DIRECTIONS];  /* how many own sites of one parity the neighbour needs */
    int *face[2][DIRECTIONS];    /* these sites */
    int ghosts[2][DIRECTIONS];   /* the first of as many ghosts that the neighbour provides */
    int ghosts_begin[2], ghosts_end[2]; /* all ghosts of a parity */
    /* The sites of a parity without a ghost as a neighbour, and the others. */
    int *inner[2], *outer[2], inner_sites, outer_sites;
} Lattice;

static inline int opposite(int direction) {
    return (direction + DIMENSIONS) % DIRECTIONS;
}

/* Collective. Divides a lattice of these extents among a grid of as many ranks as `comm` has. */
Lattice *lattice_make(MPI_Comm comm, const int global[DIMENSIONS], const int grid[DIMENSIONS]);
void lattice_free(Lattice *lattice);

/* The coordinates of a site of this rank in the whole lattice. */
void lattice_coordinates(const Lattice *lattice, int site, int global[DIMENSIONS]);

/* The number of the site at these coordinates of the whole lattice, which may lie up to one period
 * outside of it: the same number on any number of ranks. */
uint64_t lattice_number(const Lattice *lattice, const int global[DIMENSIONS]);

/* Chooses the grid of least communication of all that divide the lattice into boxes of even
 * extents. Returns whether there is one. */
int grid_choose(int ranks, const int global[DIMENSIONS], int grid[DIMENSIONS]);

/* Whether this grid divides the lattice so. */
int grid_fits(int ranks, const int global[DIMENSIONS], const int grid[DIMENSIONS]);

#endif
