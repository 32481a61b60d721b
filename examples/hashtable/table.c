/* The hash table's memory, and its verification after the inserts. */
#include "table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Aint window_bytes(const Table *t) {
    return (MPI_Aint)((1 + t->table_cells + t->heap_cells) * sizeof(Cell));
}

/* A bijection of 64-bit integers (the finaliser of splitmix64): random values that never repeat. */
static uint64_t scramble(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Never EMPTY, because scramble(0) is the only 0. */
uint64_t element(int rank, uint64_t i) { return scramble(((uint64_t)rank << 40) + i + 1); }

void table_create(Table *t, uint64_t inserts) {
    MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t->size);
    /* An element finds a free cell for the most part if there are two cells for each. */
    t->table_cells = 2 * inserts;
    t->heap_cells = inserts + 64;
    MPI_Aint bytes = window_bytes(t);
    if (t->is_created) {
        t->mine = malloc((size_t)bytes);
        if (t->mine == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
        MPI_Win_create(t->mine, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &t->win);
    } else {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &t->mine, &t->win);
    }
    /* One shared lock on all ranks for the whole run (MPI-4.1 §12.5.3): no rank waits for another
     * one, and MPI_Win_flush completes the operations. */
    MPI_Win_lock_all(0, t->win);
    table_clear(t);
}

void table_free(Table *t) {
    MPI_Win_unlock_all(t->win);
    MPI_Win_free(&t->win);
    if (t->is_created) free(t->mine);
}

void table_clear(Table *t) {
    MPI_Barrier(MPI_COMM_WORLD); /* all searches of this volume are complete */
    memset(t->mine, 0, (size_t)window_bytes(t));
    t->collided = 0;
    MPI_Win_sync(t->win); /* the stores, before accesses of other ranks */
    MPI_Barrier(MPI_COMM_WORLD);
}

void check_heap(const Table *t, int rank, uint64_t index) {
    if (index < t->heap_cells) return;
    fprintf(stderr, "hashtable: rank %d has no heap cell left\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

int find(Table *t, uint64_t value) {
    int owner = owner_of(t, value);
    Cell cell;
    for (uint64_t at = table_cell(t, value);; at = heap_cell(t, cell.next)) {
        MPI_Get(&cell, 2, MPI_UINT64_T, owner, value_at(at), 2, MPI_UINT64_T, t->win);
        MPI_Win_flush(owner, t->win);
        if (cell.value == value) return 1;
        if (cell.next == EMPTY) return 0;
    }
}

uint64_t count_mine(Table *t, uint64_t *heap) {
    uint64_t count = 0;
    MPI_Win_sync(t->win); /* the accesses of other ranks, before the loads */
    *heap = t->mine[0].value;
    for (uint64_t cell = 1; cell <= heap_cell(t, *heap); cell++)
        count += t->mine[cell].value != EMPTY;
    return count;
}
