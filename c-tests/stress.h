// All ranks change the same elements at once by all the accumulate calls, the target among them.
// What a test says of itself: where the elements lie.

#ifndef STRESS_H
#define STRESS_H

#include "created.h"

// So many that one call takes several pages. Each round adds at most 1 to an element, so that even
// one byte holds the sum of eight ranks.
enum { COUNT = 3000, HOT = 1234, ROUNDS = 12, KINDS = 9, BYTES_MAX = 16, RANKS_MAX = 8 };
enum { STRESS_BYTES = COUNT * BYTES_MAX };

enum number { INTEGER, SINGLE, DOUBLE, LONG_DOUBLE, TWO_SINGLES, TWO_DOUBLES };

struct kind {
    MPI_Datatype datatype;
    const char *name;
    int bytes;
    enum number number;
};

static struct kind kinds[KINDS];

UNUSED static void stress_start(int *argc, char ***argv)
{
    check_start(argc, argv);
    const struct kind all[KINDS] = {
        {MPI_INT8_T, "int8", 1, INTEGER}, {MPI_INT16_T, "int16", 2, INTEGER},
        {MPI_INT32_T, "int32", 4, INTEGER}, {MPI_INT64_T, "int64", 8, INTEGER},
        {MPI_FLOAT, "float", 4, SINGLE}, {MPI_DOUBLE, "double", 8, DOUBLE},
        {MPI_C_FLOAT_COMPLEX, "float complex", 8, TWO_SINGLES},
        {MPI_C_DOUBLE_COMPLEX, "double complex", 16, TWO_DOUBLES},
        {MPI_LONG_DOUBLE, "long double", 16, LONG_DOUBLE},
    };
    memcpy(kinds, all, sizeof all);
}

// Writes a small number as element `i` of an array that may lie anywhere.
static void set_number(const struct kind *kind, char *array, int i, int value)
{
    char *at = array + (long)i * kind->bytes;
    const float singles[2] = {(float)value, (float)value};
    const double doubles[2] = {value, value};
    const int64_t integer = value;
    long double wide;
    memset(&wide, 0, sizeof wide); // its padding too
    wide = value;
    switch (kind->number) {
    case INTEGER: memcpy(at, &integer, (size_t)kind->bytes); break;
    case SINGLE: case TWO_SINGLES: memcpy(at, singles, (size_t)kind->bytes); break;
    case DOUBLE: case TWO_DOUBLES: memcpy(at, doubles, (size_t)kind->bytes); break;
    case LONG_DOUBLE: memcpy(at, &wide, sizeof wide); break;
    }
}

// Reads it again; the two halves of a complex number must be the same.
static int number_at(const struct kind *kind, const char *array, int i)
{
    const char *at = array + (long)i * kind->bytes;
    float singles[2];
    double doubles[2];
    int64_t integer = 0;
    long double wide = 0;
    switch (kind->number) {
    case INTEGER: memcpy(&integer, at, (size_t)kind->bytes); return (int)integer;
    case LONG_DOUBLE: memcpy(&wide, at, sizeof wide); return (int)wide;
    case SINGLE: case TWO_SINGLES:
        singles[1] = -1;
        memcpy(singles, at, (size_t)kind->bytes);
        doubles[0] = singles[0], doubles[1] = singles[1];
        break;
    default: memcpy(doubles, at, (size_t)kind->bytes); break;
    }
    if ((kind->number == TWO_SINGLES || kind->number == TWO_DOUBLES) && doubles[0] != doubles[1])
        check_failed(__FILE__, __LINE__, "%s: element %d is half done: %f and %f", kind->name, i,
                     doubles[0], doubles[1]);
    return (int)doubles[0];
}

// Where the elements of each rank begin, and how many units of displacement each is.
struct place {
    MPI_Aint starts[RANKS_MAX];
    int units;
};

static MPI_Aint disp_of(const struct place *place, int target, int element)
{
    return place->starts[target] + (MPI_Aint)element * place->units;
}

static _Alignas(16) char ones[STRESS_BYTES], got[STRESS_BYTES];

// What this rank has added, for each target and element, and what all ranks have.
static int added[RANKS_MAX * COUNT], all_added[RANKS_MAX * COUNT];

static void count(int target, int from, int elements)
{
    for (int i = from; i < from + elements; i++)
        added[target * COUNT + i]++;
}

// Between what this rank alone has added, and all that the others can have.
static void plausible(const struct kind *kind, int target, const char *array, int index, int i)
{
    const int value = number_at(kind, array, i), mine = added[target * COUNT + index];
    if (value < mine || value > size * ROUNDS)
        check_failed(__FILE__, __LINE__, "%s: element %d of rank %d is %d, with %d of this rank",
                     kind->name, index, target, value, mine);
}

static void add_by_compare_and_swap(MPI_Win win, const struct kind *kind, int target, MPI_Aint hot)
{
    _Alignas(16) char seen[BYTES_MAX], wanted[BYTES_MAX], before[BYTES_MAX];
    OK(MPI_Fetch_and_op(NULL, seen, kind->datatype, target, hot, MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
    for (;;) {
        set_number(kind, wanted, 0, number_at(kind, seen, 0) + 1);
        OK(MPI_Compare_and_swap(wanted, seen, before, kind->datatype, target, hot, win));
        OK(MPI_Win_flush(target, win));
        if (memcmp(before, seen, (size_t)kind->bytes) == 0)
            return;
        memcpy(seen, before, sizeof seen);
    }
}

// One update of one target, by another call each round.
static void update(MPI_Win win, const struct place *place, const struct kind *kind, int target,
                   int call)
{
    const MPI_Aint disp = disp_of(place, target, 0), hot = disp_of(place, target, HOT);
    MPI_Datatype type = kind->datatype;
    int from = 0, elements = COUNT;
    MPI_Op op = MPI_SUM;
    switch (call % 6) {
    case 0: OK(MPI_Accumulate(ones, COUNT, type, target, disp, COUNT, type, op, win)); break;
    case 1:
        OK(MPI_Get_accumulate(ones, COUNT, type, got, COUNT, type, target, disp, COUNT, type, op,
                              win));
        OK(MPI_Win_flush(target, win));
        for (int i = 0; i < COUNT; i++)
            plausible(kind, target, got, i, i);
        break;
    case 2:
        from = HOT, elements = 1;
        OK(MPI_Fetch_and_op(ones, got, type, target, hot, op, win));
        OK(MPI_Win_flush(target, win));
        plausible(kind, target, got, HOT, 0);
        break;
    case 3:
        from = HOT, elements = 1;
        if (kind->number == INTEGER)
            add_by_compare_and_swap(win, kind, target, hot);
        else
            OK(MPI_Accumulate(ones, 1, type, target, hot, 1, type, op, win));
        break;
    case 4:
        from = HOT - 7, elements = 20;
        OK(MPI_Accumulate(ones, 20, type, target, disp_of(place, target, from), 20, type, op,
                          win));
        break;
    case 5:
        OK(MPI_Get_accumulate(NULL, 0, type, got, COUNT, type, target, disp, COUNT, type, MPI_NO_OP,
                              win));
        OK(MPI_Win_flush(target, win));
        for (int i = 0; i < COUNT; i++)
            plausible(kind, target, got, i, i);
        return;
    }
    OK(MPI_Win_flush(target, win));
    count(target, from, elements);
}

static void check_sums(const struct kind *kind, const char *memory)
{
    OK(MPI_Allreduce(added, all_added, size * COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < COUNT; i++) {
        const int value = number_at(kind, memory, i), want = all_added[rank * COUNT + i];
        if (value != want)
            check_failed(__FILE__, __LINE__, "%s: element %d is %d, not %d", kind->name, i, value,
                         want);
    }
}

// Half of the rounds all meet at rank 0, the others go round.
static int target_of(int round) { return round % 2 == 0 ? 0 : (rank + round) % size; }

// Under one lock of all ranks, or under one for each update, shared or exclusive in turns.
enum locking { LOCK_ALL, LOCK_EACH };

// In a window that is there: `memory` is where the elements of this rank lie.
UNUSED static void stress_in(MPI_Win win, const struct place *place, const struct kind *kind,
                             char *memory, enum locking locking)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memset(memory, 0, (size_t)COUNT * (size_t)kind->bytes);
    memset(added, 0, sizeof added);
    for (int i = 0; i < COUNT; i++)
        set_number(kind, ones, i, 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (locking == LOCK_ALL)
        OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++) {
        const int type = (rank + round / 2) % 2 == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
        if (locking == LOCK_EACH)
            OK(MPI_Win_lock(type, target_of(round), 0, win));
        update(win, place, kind, target_of(round), rank + round);
        if (locking == LOCK_EACH)
            OK(MPI_Win_unlock(target_of(round), win));
    }
    if (locking == LOCK_ALL)
        OK(MPI_Win_unlock_all(win));
    lock_own_memory(win);
    check_sums(kind, memory);
    unlock_own_memory(win);
}

// In a created window: `memory` has room for COUNT elements of the kind.
UNUSED static void stress(const struct kind *kind, char *memory, enum locking locking)
{
    const struct place place = {.units = 1};
    MPI_Win win = window_over(memory, COUNT * kind->bytes, kind->bytes);
    stress_in(win, &place, kind, memory, locking);
    OK(MPI_Win_free(&win));
}

#endif
