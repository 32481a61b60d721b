// Accumulate, Get_accumulate and Fetch_and_op with every predefined operation on every datatype
// that the standard pairs with it, REPLACE and NO_OP on all; MPI_Reduce_local is the oracle.
// MPI-4.1 sections 12.3.4 and 6.9.2.
// ranks: 1 2

#include "types.h"

enum { COUNT = 5 };

static MPI_Win win;
static char *base;

struct arrays {
    _Alignas(16) char old[COUNT * ELEMENT_BYTES_MAX];
    _Alignas(16) char given[COUNT * ELEMENT_BYTES_MAX];
    _Alignas(16) char want[COUNT * ELEMENT_BYTES_MAX];
    _Alignas(16) char got[COUNT * ELEMENT_BYTES_MAX];
};

static void fill(const struct type *type, struct arrays *a)
{
    memset(a, 0, sizeof *a);
    for (int i = 0; i < COUNT; i++) {
        int truth = type->group == LOGICAL;
        set_element(type, a->old, i, truth ? i % 2 : 3 + i);
        set_element(type, a->given, i, truth ? i / 2 % 2 : 6 - i);
    }
}

static void expect(const struct type *type, const struct op *op, struct arrays *a)
{
    memcpy(a->want, a->old, sizeof a->want);
    if (op->op == MPI_REPLACE)
        memcpy(a->want, a->given, sizeof a->want);
    else if (op->op != MPI_NO_OP)
        OK(MPI_Reduce_local(a->given, a->want, COUNT, type->datatype, op->op));
}

static void same(const struct type *type, const struct op *op, const char *call, const void *got,
                 const void *want, int count)
{
    for (int i = 0; i < count; i++)
        if (!same_element(type, got, want, i))
            check_failed(__FILE__, __LINE__, "%s with %s on %s: element %d is wrong", call,
                         op->name, type->name, i);
}

// The target's memory is set by its owner, in an epoch of its own.
static void reset(const struct arrays *a)
{
    OK(MPI_Win_fence(0, win));
    memcpy(base, a->old, sizeof a->old);
    OK(MPI_Win_fence(0, win));
}

static void try(const struct type *type, const struct op *op)
{
    struct arrays a;
    int target = next_rank();
    MPI_Datatype datatype = type->datatype;
    fill(type, &a);
    expect(type, op, &a);
    if (op->op != MPI_NO_OP) {
        reset(&a);
        OK(MPI_Accumulate(a.given, COUNT, datatype, target, 0, COUNT, datatype, op->op, win));
        OK(MPI_Win_fence(0, win));
        same(type, op, "MPI_Accumulate", base, a.want, COUNT);
    }
    reset(&a);
    OK(MPI_Get_accumulate(a.given, COUNT, datatype, a.got, COUNT, datatype, target, 0, COUNT,
                          datatype, op->op, win));
    OK(MPI_Win_fence(0, win));
    same(type, op, "MPI_Get_accumulate", base, a.want, COUNT);
    same(type, op, "MPI_Get_accumulate (result)", a.got, a.old, COUNT);
    reset(&a);
    memset(a.got, 0, sizeof a.got);
    OK(MPI_Get_accumulate(a.given, 1, datatype, a.got, 1, datatype, target, 0, 1, datatype, op->op,
                          win));
    OK(MPI_Win_fence(0, win));
    same(type, op, "MPI_Get_accumulate of one element", base, a.want, 1);
    same(type, op, "MPI_Get_accumulate of one element (result)", a.got, a.old, 1);
    CHECK(memcmp(base + type->bytes, a.old + type->bytes, (size_t)type->bytes) == 0);
    reset(&a);
    // The second call of an epoch may take another path than the first.
    static _Alignas(64) char before[ELEMENT_BYTES_MAX];
    OK(MPI_Fetch_and_op(a.given, before, datatype, target, 0, MPI_NO_OP, win));
    OK(MPI_Fetch_and_op(a.given, a.got, datatype, target, 0, op->op, win));
    OK(MPI_Win_fence(0, win));
    same(type, op, "MPI_Fetch_and_op", base, a.want, 1);
    same(type, op, "MPI_Fetch_and_op (result)", a.got, a.old, 1);
    CHECK(memcmp(base + type->bytes, a.old + type->bytes, (size_t)type->bytes) == 0);
}

int main(int argc, char **argv)
{
    struct type types[TYPES_MAX];
    const struct op replace = {MPI_REPLACE, "MPI_REPLACE", ~0u};
    const struct op no_op = {MPI_NO_OP, "MPI_NO_OP", ~0u};
    check_start(&argc, &argv);
    base = window_of(COUNT * ELEMENT_BYTES_MAX, 1, &win);
    int count = all_types(types);
    for (int t = 0; t < count; t++) {
        if (types[t].shape == OPAQUE)
            continue;
        for (int o = 0; o < OPS; o++)
            if (pairs(&all_ops[o], &types[t]))
                try(&types[t], &all_ops[o]);
        try(&types[t], &replace);
        try(&types[t], &no_op);
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
