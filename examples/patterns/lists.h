/* Irregular patterns: a list of indices says which elements leave, or where they arrive.
 *
 * A receive names only its own elements; a put names those of the target, too. So where elements
 * arrive by a list, its owner sends the list to the origin once (exchange_lists); it stays valid
 * until the owner renumbers its points. */
#ifndef LISTS_H
#define LISTS_H

#include "pattern.h"

/* The elements of `source` that leave, and the places in `target` where elements arrive: lists of
 * this rank or of its neighbour. */
static inline const int *leaving_list(const Domain *d, int source) {
    return d->leaving[source != d->rank];
}

static inline const int *arriving_list(const Domain *d, int target) {
    return d->arriving[target != d->rank];
}

/* Sends this rank's two lists, which have these lengths, to its neighbours, and gets theirs: `next`
 * needs to know what leaves, in case it gets; `previous`, where its elements arrive. */
void exchange_lists(Domain *d, int leaving, int arriving);

/* Makes a list: indices below 4 * `count`, ascending with gaps, as a loop over all elements finds
 * them. */
void ascending(int *list, int count, unsigned seed);

/* Makes both lists: different indices below `total`, in no order. */
void shuffled(int *leaving, int *arriving, int count, int total, unsigned seed);

#endif
