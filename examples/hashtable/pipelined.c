/* One-sided inserts, many at a time: each step of the insert is started for all elements of a
 * batch, and one flush ends it. So a batch waits for four round trips, and not each element for its
 * own. The steps are those of onesided.c. */
#include "table.h"
#include <stdlib.h>

struct Pipeline {
    Table *table;
    int size, count;
    uint64_t *values;
    /* What the operations of a step need and return: it may be used after the flush only. */
    uint64_t *found, *taken, *next;
    Cell *overflow;
};

static void flush(Pipeline *p) { MPI_Win_flush_all(p->table->win); }

/* Moves the elements that found their cell taken to the front. Returns how many they are. */
static int keep_collided(Pipeline *p) {
    int collided = 0;
    for (int i = 0; i < p->count; i++)
        if (p->found[i] != EMPTY) p->values[collided++] = p->values[i];
    return collided;
}

static void insert_overflow(Pipeline *p, int count) {
    static const uint64_t one = 1;
    Table *t = p->table;
    for (int i = 0; i < count; i++)
        MPI_Fetch_and_op(&one, &p->taken[i], MPI_UINT64_T, owner_of(t, p->values[i]), value_at(0),
                         MPI_SUM, t->win);
    flush(p);
    /* Two elements of a batch may have the same table cell: accumulates of one rank on one location
     * take effect in the order of the program (MPI-4.1 §12.7.2), so each links the one before. */
    for (int i = 0; i < count; i++) {
        int owner = owner_of(t, p->values[i]);
        check_heap(t, owner, p->taken[i]);
        p->next[i] = p->taken[i] + 1;
        p->overflow[i].value = p->values[i];
        MPI_Fetch_and_op(&p->next[i], &p->overflow[i].next, MPI_UINT64_T, owner,
                         next_at(table_cell(t, p->values[i])), MPI_REPLACE, t->win);
    }
    flush(p);
    for (int i = 0; i < count; i++)
        MPI_Put(&p->overflow[i], 2, MPI_UINT64_T, owner_of(t, p->values[i]),
                value_at(heap_cell(t, p->next[i])), 2, MPI_UINT64_T, t->win);
    flush(p);
    t->collided += (uint64_t)count;
}

static void insert_batch(Pipeline *p) {
    static const uint64_t empty = EMPTY;
    Table *t = p->table;
    for (int i = 0; i < p->count; i++)
        MPI_Compare_and_swap(&p->values[i], &empty, &p->found[i], MPI_UINT64_T,
                             owner_of(t, p->values[i]), value_at(table_cell(t, p->values[i])),
                             t->win);
    flush(p);
    int collided = keep_collided(p);
    if (collided > 0) insert_overflow(p, collided);
    p->count = 0;
}

Pipeline *pipeline_begin(Table *t, uint64_t batch) {
    Pipeline *p = malloc(sizeof *p);
    *p = (Pipeline){.table = t, .size = (int)batch};
    p->values = malloc(4 * batch * sizeof *p->values);
    p->found = p->values + batch;
    p->taken = p->found + batch;
    p->next = p->taken + batch;
    p->overflow = malloc(batch * sizeof *p->overflow);
    return p;
}

void insert_pipelined(Pipeline *p, uint64_t value) {
    p->values[p->count++] = value;
    if (p->count == p->size) insert_batch(p);
}

void pipeline_end(Pipeline *p) {
    insert_batch(p);
    free(p->overflow);
    free(p->values);
    free(p);
}
