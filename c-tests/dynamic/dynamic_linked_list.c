// A linked list over all ranks, each element attached on its own: every rank appends at the tail
// with compare-and-swap, walking over what the others append at the same time.
// MPI-4.1 sections 12.2.4 and 12.8 (the linked list among the examples).
// ranks: 1 2 4

#include "dynamic.h"

#include <stddef.h>

enum { ELEMENTS = 20, NOBODY = -1 };

// The owner is set first, and the place is not known until it is not zero.
struct pointer {
    MPI_Aint place;
    int owner;
};

struct element {
    struct pointer next;
    int value;
};

static MPI_Win win;
static struct element *own[ELEMENTS + 1];
static int elements;

static MPI_Aint new_element(int value)
{
    struct element *element;
    OK(MPI_Alloc_mem(sizeof *element, MPI_INFO_NULL, &element));
    element->next.place = 0;
    element->next.owner = NOBODY;
    element->value = value;
    OK(MPI_Win_attach(win, element, sizeof *element));
    own[elements++] = element;
    return address_of(element);
}

static MPI_Aint field(struct pointer at, size_t offset)
{
    return MPI_Aint_add(at.place, (MPI_Aint)offset);
}

// The successor of an element, once it is known in whole.
static struct pointer successor(struct pointer at)
{
    struct pointer next = {0, NOBODY};
    OK(MPI_Fetch_and_op(NULL, &next.owner, MPI_INT, at.owner,
                        field(at, offsetof(struct element, next.owner)), MPI_NO_OP, win));
    OK(MPI_Win_flush(at.owner, win));
    while (next.owner != NOBODY && next.place == 0) {
        OK(MPI_Fetch_and_op(NULL, &next.place, MPI_AINT, at.owner,
                            field(at, offsetof(struct element, next.place)), MPI_NO_OP, win));
        OK(MPI_Win_flush(at.owner, win));
    }
    return next;
}

// Makes the element the successor of the tail, if nobody else was quicker.
static int append_to(struct pointer tail, MPI_Aint place)
{
    const int nobody = NOBODY;
    int before = 0;
    OK(MPI_Compare_and_swap(&rank, &nobody, &before, MPI_INT, tail.owner,
                            field(tail, offsetof(struct element, next.owner)), win));
    OK(MPI_Win_flush(tail.owner, win));
    if (before != NOBODY)
        return 0;
    OK(MPI_Accumulate(&place, 1, MPI_AINT, tail.owner,
                      field(tail, offsetof(struct element, next.place)), 1, MPI_AINT, MPI_REPLACE,
                      win));
    OK(MPI_Win_flush(tail.owner, win));
    return 1;
}

static void append_all(struct pointer tail)
{
    for (int i = 0; i < ELEMENTS; i++) {
        const MPI_Aint place = new_element(1000 * rank + i);
        while (!append_to(tail, place))
            tail = successor(tail);
        tail.owner = rank;
        tail.place = place;
    }
}

// Each value is there once, and those of one rank in the order in which it appended them.
static void walk(struct pointer at)
{
    int seen[RANKS_MAX] = {0};
    for (int count = 0; count < size * ELEMENTS; count++) {
        int value = -1;
        at = successor(at);
        CHECK(at.owner != NOBODY);
        OK(MPI_Get(&value, 1, MPI_INT, at.owner, field(at, offsetof(struct element, value)), 1,
                   MPI_INT, win));
        OK(MPI_Win_flush(at.owner, win));
        CHECK_EQ(value, 1000 * at.owner + seen[at.owner]);
        seen[at.owner]++;
    }
    CHECK_EQ(successor(at).owner, NOBODY);
}

int main(int argc, char **argv)
{
    struct pointer head = {0, 0};
    check_start(&argc, &argv);
    win = dynamic_window();
    if (rank == 0)
        head.place = new_element(-1);
    OK(MPI_Bcast(&head.place, 1, MPI_AINT, 0, MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    append_all(head);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    walk(head);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < elements; i++) {
        OK(MPI_Win_detach(win, own[i]));
        OK(MPI_Free_mem(own[i]));
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
