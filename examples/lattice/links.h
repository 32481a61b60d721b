/* The gauge field: one matrix of SU(3) on each link between neighbouring sites. It is a function
 * of the link's place in the whole lattice alone, so that any division has the same field. */
#ifndef LINKS_H
#define LINKS_H

#include "geometry.h"
#include "su3.h"

typedef enum {
    RANDOM_FIELD, /* each link is drawn from SU(3) by itself */
    FREE_FIELD,   /* all links are the unit matrix */
    GAUGE_FIELD   /* the free field after a random gauge transformation */
} FieldKind;

/* What the operator multiplies the neighbour in each of the eight directions of a site by. With U
 * for the link, e = 1, (-1)^x, (-1)^(x+y) or (-1)^(x+y+z) for the staggered phase, and a minus sign
 * where the link crosses the end of the lattice in t:
 *
 *   links[s][mu]     =  e_mu(s)/2 U_mu(s)
 *   links[s][mu + 4] = -e_mu(s)/2 (U_mu(s - mu))^+
 *
 * Each rank makes also the backward links itself, so that only vectors are exchanged. */
typedef Matrix (*Links)[DIRECTIONS];

Links links_make(const Lattice *lattice, FieldKind kind);

/* U_mu at these coordinates of the whole lattice, without phases. */
Matrix link_at(const Lattice *lattice, FieldKind kind, const int global[DIMENSIONS], int mu);

/* The gauge transformation at a site that makes this field of the free one. */
Matrix gauge_at(const Lattice *lattice, FieldKind kind, const int global[DIMENSIONS]);

/* A vector of Gaussian numbers, which is a function of the site. */
Vector random_vector(const Lattice *lattice, const int global[DIMENSIONS]);

#endif
