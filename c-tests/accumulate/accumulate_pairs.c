// MINLOC and MAXLOC, REPLACE and NO_OP on the pair types. MPI-4.1 sections 12.3.4 and 6.9.4.
// ranks: 1 2

#include "check.h"

static MPI_Win win;
static char *base;

// One test per pair type: it keeps the larger or smaller value, and at a tie the smaller index.
#define PAIR(name, value_type, datatype) \
static void name(void) \
{ \
    struct pair { value_type value; int index; }; \
    const struct pair old[4] = {{5, 3}, {5, 3}, {5, 3}, {5, 3}}; \
    const struct pair given[4] = {{4, 9}, {6, 9}, {5, 1}, {5, 7}}; \
    const struct pair max[4] = {{5, 3}, {6, 9}, {5, 1}, {5, 3}}; \
    const struct pair min[4] = {{4, 9}, {5, 3}, {5, 1}, {5, 3}}; \
    const MPI_Op ops[4] = {MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP}; \
    const struct pair *wants[4] = {max, min, given, old}; \
    const struct pair *mine = (const struct pair *)base; \
    struct pair got[4]; \
    for (int o = 0; o < 8; o++) { \
        memset(got, 0, sizeof got); \
        OK(MPI_Win_fence(0, win)); \
        memcpy(base, old, sizeof old); \
        OK(MPI_Win_fence(0, win)); \
        if (o < 4) \
            OK(MPI_Get_accumulate(given, 4, datatype, got, 4, datatype, next_rank(), 0, 4, \
                                  datatype, ops[o], win)); \
        else if (o < 7) \
            OK(MPI_Accumulate(given, 4, datatype, next_rank(), 0, 4, datatype, ops[o - 4], win)); \
        OK(MPI_Win_fence(0, win)); \
        for (int i = 0; i < 4; i++) { \
            CHECK(mine[i].value == wants[o % 4][i].value); \
            CHECK_EQ(mine[i].index, wants[o % 4][i].index); \
            CHECK(o >= 4 || got[i].value == old[i].value); \
            CHECK(o >= 4 || got[i].index == old[i].index); \
        } \
    } \
}

PAIR(of_ints, int, MPI_2INT)
PAIR(of_longs, long, MPI_LONG_INT)
PAIR(of_shorts, short, MPI_SHORT_INT)
PAIR(of_floats, float, MPI_FLOAT_INT)
PAIR(of_doubles, double, MPI_DOUBLE_INT)
PAIR(of_long_doubles, long double, MPI_LONG_DOUBLE_INT)

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(256, 1, &win);
    of_ints();
    of_floats();
    of_longs();
    of_shorts();
    of_doubles();
    of_long_doubles();
    OK(MPI_Win_free(&win));
    return check_end();
}
