/* Who sends to whom: a chain of producers and consumers, and a tree that adds up. */
#include "pipeline.h"

/* Counts the numbers of a block that are not the sum of the parts of so many ranks. */
static void verify(Pipeline *p, const double *block, int round) {
    for (int i = 0; i < p->count; i++) {
        double sum = 0;
        for (int rank = 0; rank < p->size; rank++) sum += part(rank, round, i);
        p->wrong += block[i] != sum;
    }
}

/* Makes this rank's block of a round: its own part, and the blocks of its senders. */
static void add_up(Pipeline *p, int senders, int round) {
    for (int i = 0; i < p->count; i++) p->block[i] = part(p->rank, round, i);
    for (int k = 0; k < senders; k++) {
        const double *from = place(p, k, round);
        for (int i = 0; i < p->count; i++) p->block[i] += from[i];
    }
}

/* All rounds of a rank with these senders, which is sender number `as` of its receiver; a rank without
 * one has the results. */
static void run(Pipeline *p, const int senders[], int number, int receiver, int as) {
    for (int round = 0; round < p->rounds; round++) {
        wait_for_blocks(p, senders, number, round);
        add_up(p, number, round);
        free_places(p, senders, number, round);
        if (receiver >= 0) {
            wait_for_place(p, receiver, round);
            deliver(p, receiver, as, round);
        } else {
            verify(p, p->block, round);
        }
    }
}

/* Rank 0 produces; each other rank consumes the block of the rank before it, and produces one for the
 * next. While the last rank has the first block, the others have the next ones. */
void run_chain(Pipeline *p) {
    int before = p->rank - 1, next = p->rank + 1;
    run(p, &before, p->rank > 0, next < p->size ? next : -1, 0);
}

/* Rank r has the children arity * r + 1 and the next ones; rank 0 gets the sum of all. It waits once for
 * all of its children, whose blocks come in any order. */
void run_tree(Pipeline *p) {
    int *children = malloc((size_t)p->arity * sizeof *children), number = 0;
    for (int k = 1; k <= p->arity && p->arity * p->rank + k < p->size; k++)
        children[number++] = p->arity * p->rank + k;
    int parent = p->rank > 0 ? (p->rank - 1) / p->arity : -1;
    run(p, children, number, parent, p->rank > 0 ? (p->rank - 1) % p->arity : 0);
    free(children);
}
