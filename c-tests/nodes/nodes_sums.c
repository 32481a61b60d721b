// Ranks of the target's node and of other nodes accumulate on the same elements at once, of every
// width that a processor changes by one instruction and wider ones, one at a time and several: no
// update is lost, whichever call and whichever way made it. MPI-4.1 sections 12.3.4 and 12.7.1.
// ranks: 2 4 8
// plain ranks: 2

#include "check.h"

#include <complex.h>
#include <stddef.h>

enum { TIMES = 200, MANY = 24, LONG = 20000, SWAPS = 40 };

// The elements of rank 0.
static struct {
    float floats[MANY];
    int ints[MANY];
    double doubles[MANY];
    short shorts[MANY];
    signed char bytes[MANY];
    double complex wide[MANY];
    struct { double value; int rank; } largest;
    double many[LONG];
} *base;

static MPI_Win win;

#define AT(member) ((MPI_Aint)offsetof(__typeof__(*base), member))

static void add(const void *one, MPI_Datatype type, MPI_Aint at, int count)
{
    OK(MPI_Accumulate(one, count, type, 0, at, count, type, MPI_SUM, win));
}

// One element of each type, by all ranks.
static void singles(void)
{
    const float f = 0.5f;
    const int i = 1;
    const double d = 0.25;
    const short s = 1;
    const signed char b = 1;
    const double complex c = 1 + 2 * I;
    for (int k = 0; k < TIMES; k++) {
        const int which = k % 2;
        add(&f, MPI_FLOAT, AT(floats) + which * (MPI_Aint)sizeof f, 1);
        add(&i, MPI_INT, AT(ints) + which * (MPI_Aint)sizeof i, 1);
        add(&d, MPI_DOUBLE, AT(doubles) + which * (MPI_Aint)sizeof d, 1);
        add(&s, MPI_SHORT, AT(shorts) + which * (MPI_Aint)sizeof s, 1);
        if (k < 8)
            add(&b, MPI_SIGNED_CHAR, AT(bytes) + which, 1);
        if (k < TIMES / 4)
            add(&c, MPI_C_DOUBLE_COMPLEX, AT(wide) + which * (MPI_Aint)sizeof c, 1);
        if (k % 16 == 0)
            OK(MPI_Win_flush(0, win));
    }
    OK(MPI_Win_flush(0, win));
}

static void check_singles(void)
{
    for (int which = 0; which < 2; which++) {
        CHECK(base->floats[which] == 0.5f * TIMES / 2 * (float)size);
        CHECK_EQ(base->ints[which], TIMES / 2 * size);
        CHECK(base->doubles[which] == 0.25 * TIMES / 2 * size);
        CHECK_EQ(base->shorts[which], TIMES / 2 * size);
        CHECK_EQ(base->bytes[which], 4 * size);
        CHECK(creal(base->wide[which]) == TIMES / 8 * size);
        CHECK(cimag(base->wide[which]) == 2.0 * TIMES / 8 * size);
    }
}

// Several elements at once by the odd ranks, one of them by the even ones, with results by both.
static void several(void)
{
    double ones[MANY], old[MANY], last = -1;
    const double one = 1;
    for (int k = 0; k < MANY; k++)
        ones[k] = 1;
    for (int k = 0; k < TIMES; k++) {
        const MPI_Aint at = AT(doubles) + 2 * (MPI_Aint)sizeof one;
        if (rank % 2)
            OK(MPI_Get_accumulate(ones, MANY - 2, MPI_DOUBLE, old, MANY - 2, MPI_DOUBLE, 0, at,
                                  MANY - 2, MPI_DOUBLE, MPI_SUM, win));
        else
            OK(MPI_Fetch_and_op(&one, old, MPI_DOUBLE, 0, at, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        CHECK(old[0] > last);
        last = old[0];
    }
}

static void check_several(void)
{
    CHECK(base->doubles[2] == (double)TIMES * size);
    for (int k = 3; k < MANY; k++)
        CHECK(base->doubles[k] == TIMES * (double)(size / 2));
}

// Adds one to an int or a short by a loop of compare-and-swap, while others add by sums.
static void swaps(void)
{
    const int one = 1;
    const short short_one = 1;
    for (int k = 0; k < SWAPS; k++) {
        if (rank % 2) {
            add(&one, MPI_INT, AT(ints[5]), 1);
            add(&short_one, MPI_SHORT, AT(shorts[5]), 1);
            OK(MPI_Win_flush(0, win));
            continue;
        }
        for (int seen = 0, before = -1; before != seen; ) {
            seen = before < 0 ? 0 : before;
            const int new = seen + 1;
            OK(MPI_Compare_and_swap(&new, &seen, &before, MPI_INT, 0, AT(ints[5]), win));
            OK(MPI_Win_flush(0, win));
        }
        for (short seen = 0, before = -1; before != seen; ) {
            seen = before < 0 ? 0 : before;
            const short new = (short)(seen + 1);
            OK(MPI_Compare_and_swap(&new, &seen, &before, MPI_SHORT, 0, AT(shorts[5]), win));
            OK(MPI_Win_flush(0, win));
        }
    }
}

static void check_swaps(void)
{
    CHECK_EQ(base->ints[5], SWAPS * size);
    CHECK_EQ(base->shorts[5], SWAPS * size);
}

// More elements than there is room for at once, all under one call; then the same elements with
// gaps between them.
static void longs(void)
{
    static double ones[LONG], old[LONG];
    MPI_Datatype every_other;
    for (int k = 0; k < LONG; k++)
        ones[k] = 1 + k % 7;
    OK(MPI_Get_accumulate(ones, LONG, MPI_DOUBLE, old, LONG, MPI_DOUBLE, 0, AT(many), LONG,
                          MPI_DOUBLE, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    // The call is one whole: all elements have been changed as often.
    const double before = old[0];
    for (int k = 0; k < LONG; k++)
        CHECK(old[k] == before * (1 + k % 7));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_vector(LONG / 2, 1, 2, MPI_DOUBLE, &every_other));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_Accumulate(ones, LONG / 2, MPI_DOUBLE, 0, AT(many), 1, every_other, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    OK(MPI_Type_free(&every_other));
}

static void check_longs(void)
{
    for (int k = 0; k < LONG; k++) {
        const double sums = k % 2 ? 0 : 1 + k / 2 % 7;
        CHECK(base->many[k] == size * (1 + k % 7 + sums));
    }
}

// A pair with padding after it: the largest value wins, and the padding of the result stays.
static void pairs(void)
{
    struct { double value; int rank, padding; } mine = {rank + 1, rank, 5}, old = {0, 0, 77};
    OK(MPI_Get_accumulate(&mine, 1, MPI_DOUBLE_INT, &old, 1, MPI_DOUBLE_INT, 0, AT(largest), 1,
                          MPI_DOUBLE_INT, MPI_MAXLOC, win));
    OK(MPI_Win_flush(0, win));
    CHECK_EQ(old.padding, 77);
    CHECK(old.value >= 0 && old.value <= size);
}

static void check_pairs(void)
{
    CHECK(base->largest.value == size);
    CHECK_EQ(base->largest.rank, size - 1);
}

// In an exclusive lock, where nothing else is under way and no call waits.
static void alone(void)
{
    double ones[MANY], sum = 0;
    const double one = 1;
    for (int k = 0; k < MANY; k++)
        ones[k] = 1;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    for (int k = 0; k < TIMES; k++) {
        add(ones, MPI_DOUBLE, AT(doubles), MANY);
        add(&one, MPI_DOUBLE, AT(doubles[3]), 1);
    }
    OK(MPI_Fetch_and_op(NULL, &sum, MPI_DOUBLE, 0, AT(doubles[3]), MPI_NO_OP, win));
    OK(MPI_Win_unlock(0, win));
    CHECK(sum >= 2.0 * TIMES);
}

static double before_alone;

static void check_alone(void)
{
    CHECK(base->doubles[3] == before_alone + 2.0 * TIMES * size);
}

// Calls `work` on all ranks at once, and then `check` on rank 0.
static void together(void (*work)(void), void (*check)(void))
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    work();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    if (rank == 0)
        check();
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(sizeof *base, 1, &win);
    OK(MPI_Win_lock_all(0, win));
    together(singles, check_singles);
    together(several, check_several);
    together(swaps, check_swaps);
    together(longs, check_longs);
    together(pairs, check_pairs);
    OK(MPI_Win_unlock_all(win));
    before_alone = base ? base->doubles[3] : 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    alone();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    if (rank == 0)
        check_alone();
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
