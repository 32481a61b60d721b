/* Known answers that a run is compared with. */
#ifndef CHECK_H
#define CHECK_H

#include "cg.h"

/* The source: Gaussian numbers, or for the free field and its transforms one site, the origin. */
void source_make(const Lattice *lattice, FieldKind kind, Vector *b);

/* The largest element of U^+ U - 1 over the links of this rank, forward and backward. */
double unitarity_error(const Lattice *lattice, Links links);

/* Collective. The mean plaquette, Re tr U_mu(s) U_nu(s+mu) U_mu(s+nu)^+ U_nu(s)^+ / 3, from the
 * operator's links and halo: vectors are carried around all plaquettes. */
double plaquette_by_halo(const Operator *a);

/* Collective. The same from the function that defines the links, without a halo. */
double plaquette_by_definition(const Lattice *lattice, FieldKind kind);

/* How far the mean plaquette may be from its known value: 1 for the free field and its transforms,
 * 0 for random links up to statistics. */
int plaquette_is_plausible(const Lattice *lattice, FieldKind kind, double plaquette);

/* Collective. |x - exact| / |exact| for the free field and its transforms. */
double free_field_error(const Lattice *lattice, FieldKind kind, double mass, const Vector *x);

#endif
