/* A distributed hash table: what the variants share, from the layout of memory to the
 * verification of all elements.
 *
 * Each rank has a local volume, which is its part of the window: the number of heap cells taken (in
 * a cell of its own), the table, and the heap for elements whose table cell is taken. */
#ifndef TABLE_H
#define TABLE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { EMPTY = 0 }; /* the value of a free cell, and the end of a chain */
typedef struct { uint64_t value, next; } Cell; /* next: index in the heap plus 1 */

typedef struct {
    MPI_Win win;
    Cell *mine; /* this rank's local volume */
    uint64_t table_cells, heap_cells;
    uint64_t collided; /* elements that this rank has put into a heap */
    int rank, size, is_created;
} Table;

/* The cells of a window: the counter, table_cells of the table, heap_cells of the heap. */
static inline int owner_of(const Table *t, uint64_t value) {
    return (int)(value % (uint64_t)t->size);
}
static inline uint64_t table_cell(const Table *t, uint64_t value) {
    return 1 + value / (uint64_t)t->size % t->table_cells;
}
static inline uint64_t heap_cell(const Table *t, uint64_t next) { return t->table_cells + next; }

/* The displacements of a cell's words are in bytes: the window's displacement unit is 1. */
static inline MPI_Aint value_at(uint64_t cell) { return (MPI_Aint)(cell * sizeof(Cell)); }
static inline MPI_Aint next_at(uint64_t cell) {
    return value_at(cell) + (MPI_Aint)offsetof(Cell, next);
}

/* The i-th element that a rank inserts: random, never EMPTY, never the same twice. */
uint64_t element(int rank, uint64_t i);

/* Collective: the window, for `inserts` elements of each rank, and an epoch of lock_all. */
void table_create(Table *t, uint64_t inserts);
void table_free(Table *t);
/* Collective: empties all local volumes. */
void table_clear(Table *t);
/* Ends the program if the heap of this rank has no cell with this index. */
void check_heap(const Table *t, int rank, uint64_t index);

/* Searches for a value from any rank, one-sided: follows the chain of its table cell. */
int find(Table *t, uint64_t value);
/* The elements in this rank's own local volume, and how many of them are in the heap. */
uint64_t count_mine(Table *t, uint64_t *heap);

/* The variants: how an element gets into its owner's local volume. */
void insert_onesided(Table *t, uint64_t value);

typedef struct Pipeline Pipeline;
/* `batch`: elements whose operations are under way at the same time. */
Pipeline *pipeline_begin(Table *t, uint64_t batch);
void insert_pipelined(Pipeline *p, uint64_t value);
/* Local: returns when all elements of this rank are in the table. */
void pipeline_end(Pipeline *p);

typedef struct Messages Messages;
/* `batch`: elements of a message; `poll_every`: inserts from one check for messages to the next. */
Messages *messages_begin(Table *t, uint64_t batch, int poll_every);
void insert_by_message(Messages *m, uint64_t value);
/* Collective: returns when all elements of all ranks are in this rank's local volume. */
void messages_end(Messages *m);

#endif
