// Fences with every legal combination of assertions separate puts, gets and local stores.
// MPI-4.1 sections 12.5.1 and 12.5.5.
// ranks: 1 2 4 8
// plain ranks: 1 2 4

#include "check.h"

static int *base;
static MPI_Win win;

// Puts only, no local stores: NOSTORE may be given at the end, NOPRECEDE at the start.
static void puts_between(int opening, int closing, int mark)
{
    int value = mark + rank;
    OK(MPI_Win_fence(opening, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 1, 1, MPI_INT, win));
    OK(MPI_Win_fence(closing, win));
    CHECK_EQ(base[1], mark + previous_rank());
}

// Gets of what was stored before the opening fence: NOPUT may be given.
static void gets_between(int opening, int closing, int mark)
{
    int got = -1;
    base[2] = mark + rank;
    OK(MPI_Win_fence(opening, win));
    OK(MPI_Get(&got, 1, MPI_INT, next_rank(), 2, 1, MPI_INT, win));
    OK(MPI_Win_fence(closing, win));
    CHECK_EQ(got, mark + next_rank());
}

static void every_combination(void)
{
    static const int openings[] = {0, MPI_MODE_NOPRECEDE};
    static const int closings[] = {0, MPI_MODE_NOSUCCEED, MPI_MODE_NOSTORE,
                                   MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED};
    int mark = 1000;
    for (int o = 0; o < 2; o++)
        for (int c = 0; c < 4; c++) {
            OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
            puts_between(openings[o], closings[c], mark += 1000);
            OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
            gets_between(openings[o] | MPI_MODE_NOPUT, closings[c], mark += 1000);
            OK(MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, win));
            gets_between(openings[o] | MPI_MODE_NOPUT, closings[c] & ~MPI_MODE_NOSTORE,
                         mark += 1000);
        }
}

// One fence closes an epoch and opens the next; nothing of one is seen in the other.
static void many_epochs(void)
{
    OK(MPI_Win_fence(0, win));
    for (int round = 0; round < 50; round++) {
        OK(MPI_Put(&round, 1, MPI_INT, next_rank(), 3, 1, MPI_INT, win));
        OK(MPI_Win_fence(0, win));
        CHECK_EQ(base[3], round);
        OK(MPI_Win_fence(0, win));
    }
    OK(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED,
                     win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(64, sizeof(int), &win);
    every_combination();
    many_epochs();
    OK(MPI_Win_free(&win));
    return check_end();
}
