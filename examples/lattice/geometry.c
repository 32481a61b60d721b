/* The lattice: which sites a rank has, where their neighbours are, and what neighbours exchange. */
#include "geometry.h"

#include <stdlib.h>

/* The coordinates in this rank's box. Sites 2k and 2k+1 of the box, counted with x fastest, have
 * different parities; each is number k of its half. */
static void local_coordinates(const Lattice *l, int site, int at[DIMENSIONS]) {
    int parity = site >= l->sites / 2;
    int rest = 2 * (site - parity * (l->sites / 2));
    for (int d = 0; d < DIMENSIONS; d++) {
        at[d] = rest % l->local[d];
        rest /= l->local[d];
    }
    at[0] += (parity + at[1] + at[2] + at[3]) % 2;
}

static int local_site(const Lattice *l, const int at[DIMENSIONS]) {
    int number = 0;
    for (int d = DIMENSIONS - 1; d >= 0; d--) number = number * l->local[d] + at[d];
    int parity = (at[0] + at[1] + at[2] + at[3]) % 2;
    return parity * (l->sites / 2) + number / 2;
}

void lattice_coordinates(const Lattice *l, int site, int global[DIMENSIONS]) {
    local_coordinates(l, site, global);
    for (int d = 0; d < DIMENSIONS; d++) global[d] += l->origin[d];
}

uint64_t lattice_number(const Lattice *l, const int global[DIMENSIONS]) {
    uint64_t number = 0;
    for (int d = DIMENSIONS - 1; d >= 0; d--)
        number = number * l->global[d] + (global[d] + l->global[d]) % l->global[d];
    return number;
}

/* Gives the ghosts their places: first those of even sites, in the order of directions. */
static void place_ghosts(Lattice *l) {
    int place = l->sites;
    for (int parity = EVEN; parity <= ODD; parity++) {
        l->ghosts_begin[parity] = place;
        for (int d = 0; d < DIRECTIONS; d++) {
            l->ghosts[parity][d] = place;
            place += l->face_sites[d];
        }
        l->ghosts_end[parity] = place;
    }
    l->field_sites = place;
}

/* Fills in the next sites and the faces. A rank and its neighbour list the sites along their common
 * border in the same order, so that number i of a face is number i of the neighbour's ghosts. */
static void link_sites(Lattice *l) {
    int found[2][DIRECTIONS] = {0}, inner[2] = {0}, outer[2] = {0};
    for (int site = 0; site < l->sites; site++) {
        int at[DIMENSIONS], parity = site >= l->sites / 2, has_ghost = 0;
        local_coordinates(l, site, at);
        for (int d = 0; d < DIRECTIONS; d++) {
            int axis = d % DIMENSIONS, step = d < DIMENSIONS ? 1 : -1, here = at[axis];
            int is_border = here + step < 0 || here + step == l->local[axis];
            if (is_border && l->neighbour[d] >= 0) {
                int number = found[parity][d]++;
                l->face[parity][d][number] = site;
                l->next[site][d] = l->ghosts[!parity][d] + number;
                has_ghost = 1;
            } else {
                at[axis] = (here + step + l->local[axis]) % l->local[axis];
                l->next[site][d] = local_site(l, at);
                at[axis] = here;
            }
        }
        if (has_ghost)
            l->outer[parity][outer[parity]++] = site;
        else
            l->inner[parity][inner[parity]++] = site;
    }
    l->inner_sites = inner[EVEN]; /* as many as odd ones */
    l->outer_sites = outer[EVEN];
}

Lattice *lattice_make(MPI_Comm comm, const int global[DIMENSIONS], const int grid[DIMENSIONS]) {
    static const int periodic[DIMENSIONS] = {1, 1, 1, 1};
    Lattice *l = calloc(1, sizeof *l);
    int rank, at[DIMENSIONS];
    MPI_Cart_create(comm, DIMENSIONS, grid, periodic, 0, &l->comm);
    MPI_Comm_rank(l->comm, &rank);
    MPI_Cart_coords(l->comm, rank, DIMENSIONS, at);
    l->sites = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
        l->global[d] = global[d];
        l->grid[d] = grid[d];
        l->local[d] = global[d] / grid[d];
        l->origin[d] = at[d] * l->local[d];
        l->sites *= l->local[d];
    }
    for (int d = 0; d < DIMENSIONS; d++) {
        int *back = &l->neighbour[opposite(d)];
        MPI_Cart_shift(l->comm, d, 1, back, &l->neighbour[d]);
        if (grid[d] == 1) *back = l->neighbour[d] = -1;
        l->face_sites[d] = grid[d] == 1 ? 0 : l->sites / l->local[d] / 2;
        l->face_sites[opposite(d)] = l->face_sites[d];
    }
    place_ghosts(l);
    l->next = malloc(l->sites * sizeof *l->next);
    for (int parity = EVEN; parity <= ODD; parity++) {
        l->inner[parity] = malloc(l->sites / 2 * sizeof(int));
        l->outer[parity] = malloc(l->sites / 2 * sizeof(int));
        for (int d = 0; d < DIRECTIONS; d++)
            l->face[parity][d] = malloc((l->face_sites[d] + 1) * sizeof(int));
    }
    link_sites(l);
    return l;
}

void lattice_free(Lattice *l) {
    for (int parity = EVEN; parity <= ODD; parity++) {
        free(l->inner[parity]);
        free(l->outer[parity]);
        for (int d = 0; d < DIRECTIONS; d++) free(l->face[parity][d]);
    }
    free(l->next);
    MPI_Comm_free(&l->comm);
    free(l);
}

int grid_fits(int ranks, const int global[DIMENSIONS], const int grid[DIMENSIONS]) {
    int product = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
        if (grid[d] < 1 || global[d] % (2 * grid[d]) != 0) return 0;
        product *= grid[d];
    }
    return product == ranks;
}

/* How many sites a rank receives, as a part of the sites that it has. */
static double communication(const int global[DIMENSIONS], const int grid[DIMENSIONS]) {
    double part = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        if (grid[d] > 1) part += 2.0 * grid[d] / global[d];
    return part;
}

int grid_choose(int ranks, const int global[DIMENSIONS], int grid[DIMENSIONS]) {
    int try[DIMENSIONS], is_found = 0;
    double least = 0;
    for (try[0] = 1; try[0] <= ranks; try[0]++)
        for (try[1] = 1; try[0] * try[1] <= ranks; try[1]++)
            for (try[2] = 1; try[0] * try[1] * try[2] <= ranks; try[2]++) {
                try[3] = ranks / (try[0] * try[1] * try[2]);
                double cost = communication(global, try);
                if (!grid_fits(ranks, global, try) || (is_found && cost >= least)) continue;
                for (int d = 0; d < DIMENSIONS; d++) grid[d] = try[d];
                least = cost;
                is_found = 1;
            }
    return is_found;
}
