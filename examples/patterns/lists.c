/* Makes lists of indices, and sends them to the neighbours. */
#include "lists.h"
#include <stdlib.h>
#include <string.h>

void exchange_lists(Domain *d, int leaving, int arriving) {
    d->leaving[1] = malloc(sizeof(int) * leaving);
    d->arriving[1] = malloc(sizeof(int) * arriving);
    MPI_Sendrecv(d->leaving[0], leaving, MPI_INT, d->next, 0, d->leaving[1], leaving, MPI_INT,
                 d->previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(d->arriving[0], arriving, MPI_INT, d->previous, 0, d->arriving[1], arriving,
                 MPI_INT, d->next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static unsigned next_random(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

void ascending(int *list, int count, unsigned seed) {
    for (int i = 0; i < count; i++) list[i] = 4 * i + next_random(&seed) % 4;
}

void shuffled(int *leaving, int *arriving, int count, int total, unsigned seed) {
    int *all = malloc(sizeof(int) * total);
    for (int i = 0; i < total; i++) all[i] = i;
    for (int i = 0; i < 2 * count; i++) {
        int other = i + next_random(&seed) % (total - i), index = all[i];
        all[i] = all[other];
        all[other] = index;
    }
    memcpy(leaving, all, sizeof(int) * count);
    memcpy(arriving, all + count, sizeof(int) * count);
    free(all);
}
