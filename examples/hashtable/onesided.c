/* Inserts by one-sided calls: the origin does all of it, and the owner of the element nothing. */
#include "table.h"

/* Each word of a cell is changed by one kind of atomic operation only, as MPI requires of
 * concurrent ones without the info key accumulate_ops (MPI-4.1 §12.2.1): `value` by
 * compare-and-swap, `next` by MPI_REPLACE, the counter by MPI_SUM. The put is no atomic operation,
 * but no other rank has the index of this heap cell. */
void insert_onesided(Table *t, uint64_t value) {
    int owner = owner_of(t, value);
    uint64_t cell = table_cell(t, value), empty = EMPTY, found, one = 1, taken;
    MPI_Compare_and_swap(&value, &empty, &found, MPI_UINT64_T, owner, value_at(cell), t->win);
    MPI_Win_flush(owner, t->win); /* `found` is there only now */
    if (found == EMPTY) return;
    MPI_Fetch_and_op(&one, &taken, MPI_UINT64_T, owner, value_at(0), MPI_SUM, t->win);
    MPI_Win_flush(owner, t->win);
    check_heap(t, owner, taken);
    /* The chain is last in, first out: the table cell refers to the new heap cell, and this one to
     * the cell before. Between the two steps a reader would find a gap, so reads have to wait until
     * all inserts are over. */
    Cell overflow = {value, EMPTY};
    uint64_t next = taken + 1;
    MPI_Fetch_and_op(&next, &overflow.next, MPI_UINT64_T, owner, next_at(cell), MPI_REPLACE,
                     t->win);
    MPI_Win_flush(owner, t->win);
    MPI_Put(&overflow, 2, MPI_UINT64_T, owner, value_at(heap_cell(t, next)), 2, MPI_UINT64_T,
            t->win);
    MPI_Win_flush(owner, t->win);
    t->collided++;
}
