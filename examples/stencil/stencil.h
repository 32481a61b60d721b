/* The part of the grid that one rank has, its neighbours, and what the files of this example call
 * of each other. */
#ifndef STENCIL_H
#define STENCIL_H

#include <mpi.h>

enum { DIMS_MAX = 3, NEIGHBOURS_MAX = 2 * DIMS_MAX };

/* A rank with which this rank exchanges halos. The datatypes describe cells where they are in an
 * array, so MPI moves them from array to array and no code packs them. */
typedef struct {
    int rank;
    int side, their_side;    /* this neighbour's flag in our window; our flag in its window */
    MPI_Datatype border;     /* the outermost cells of ours, in our array */
    MPI_Datatype halo;       /* the copy of its border, in our array */
    MPI_Datatype their_halo; /* the copy of our border, in its array */
    MPI_Aint their_u[2];     /* where its arrays begin, in its window */
} Neighbour;

/* The whole grid has `points` inner points in each dimension and zeros around them. This rank has
 * the block of `size` points that begins at `start`, and one layer of halo around it. */
typedef struct {
    int dims, points;
    int size[DIMS_MAX], start[DIMS_MAX];
    long stride[DIMS_MAX], cells; /* of an array with its halo, in cells */
    MPI_Comm comm;
    MPI_Win win;          /* it holds the flags and both arrays */
    double *u[2];         /* step n reads u[n % 2] and writes u[(n + 1) % 2] */
    unsigned char *flags; /* one of each side, for `lock_all` */
    MPI_Count notified[2]; /* borders of neighbours that have come into each array, for `notify` */
    int neighbours;
    Neighbour neighbour[NEIGHBOURS_MAX];
    MPI_Group neighbour_group;
} Grid;

/* grid.c */
void grid_create(Grid *g, MPI_Comm comm, int dims, int points);
void grid_free(Grid *g);
void grid_position(const Grid *g, long cell, int position[]);
int grid_is_inner(const Grid *g, const int position[]);
void sweep(const Grid *g, const double *now, double *next);

/* exchange.c: each computes so many steps, and exchanges halos in its way. */
void run_messages(Grid *g, int steps);
void run_fence(Grid *g, int steps);
void run_pscw(Grid *g, int steps);
void run_lock_all(Grid *g, int steps);
void run_notify(Grid *g, int steps);

/* verify.c */
void fill(Grid *g);
double error_of_solution(const Grid *g, int steps);
double error_of_serial(const Grid *g, const Grid *serial, int steps);

/* The share of the difference between a point and its neighbours that one step evens out: half of
 * the largest one that is stable. */
static inline double diffusion(int dims) { return 1.0 / (4 * dims); }

#endif
