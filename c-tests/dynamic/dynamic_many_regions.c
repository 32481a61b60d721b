// 4,000 small regions in one window: attached in one random order, detached in another, attached
// again, and each reached at each time. MPI-4.1 section 12.2.4.
// ranks: 1 2 4

#include "dynamic.h"

enum { REGIONS = 4000, PAIR = 1040, GAP = 8 };

static MPI_Win win;
static int64_t *regions[REGIONS];
static MPI_Aint theirs[REGIONS];
static int order[REGIONS];
static unsigned random_state;

static unsigned next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static void shuffle(void)
{
    for (int i = REGIONS - 1; i > 0; i--) {
        int other = (int)(next_random() % (unsigned)(i + 1)), was = order[i];
        order[i] = order[other];
        order[other] = was;
    }
}

// One to four words. Two regions lie close to each other, the next two on other pages.
static int words_of(int number) { return 1 + number % 4; }

static void attach(int number)
{
    OK(MPI_Win_attach(win, regions[number], words_of(number) * (MPI_Aint)sizeof(int64_t)));
}

// Adds to the last word of those of the next rank's regions that are attached.
static void reach_each(int first, int step)
{
    static int64_t values[REGIONS];
    for (int i = first; i < REGIONS; i += step) {
        const MPI_Aint last = (words_of(i) - 1) * (MPI_Aint)sizeof(int64_t);
        values[i] = i + 1;
        OK(MPI_Accumulate(&values[i], 1, MPI_INT64_T, next_rank(), MPI_Aint_add(theirs[i], last), 1,
                          MPI_INT64_T, MPI_SUM, win));
        if (i % 200 == first)
            OK(MPI_Win_flush(next_rank(), win));
    }
}

static void expect_each(int times_odd, int times_even)
{
    for (int i = 0; i < REGIONS; i++) {
        const int last = words_of(i) - 1;
        for (int word = 0; word < last; word++)
            CHECK_EQ(regions[i][word], 0);
        CHECK_EQ(regions[i][last], (i + 1) * (i % 2 == 1 ? times_odd : times_even));
    }
}

static void round_of_all(int round)
{
    shuffle();
    for (int i = 0; i < REGIONS; i++)
        attach(order[i]);
    settle(win);
    reach_each(0, 1);
    settle(win);
    expect_each(3 * round + 1, 2 * round + 1);
    // Without the even ones the odd ones still work; attached again, they do, too.
    shuffle();
    for (int i = 0; i < REGIONS; i++)
        if (order[i] % 2 == 0)
            OK(MPI_Win_detach(win, regions[order[i]]));
    settle(win);
    reach_each(1, 2);
    settle(win);
    for (int i = REGIONS - 1; i >= 0; i--)
        if (order[i] % 2 == 0)
            attach(order[i]);
    settle(win);
    reach_each(0, 1);
    settle(win);
    expect_each(3 * round + 3, 2 * round + 2);
    shuffle();
    for (int i = 0; i < REGIONS; i++)
        OK(MPI_Win_detach(win, regions[order[i]]));
}

int main(int argc, char **argv)
{
    static int64_t memory[REGIONS / 2 * PAIR];
    static MPI_Aint mine[REGIONS];
    check_start(&argc, &argv);
    random_state = 12345u + 77u * (unsigned)rank;
    win = dynamic_window();
    for (int i = 0; i < REGIONS; i++) {
        order[i] = i;
        regions[i] = memory + i / 2 * PAIR + i % 2 * GAP;
        mine[i] = address_of(regions[i]);
    }
    OK(MPI_Sendrecv(mine, REGIONS, MPI_AINT, previous_rank(), 0, theirs, REGIONS, MPI_AINT,
                    next_rank(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Win_lock_all(0, win));
    round_of_all(0);
    round_of_all(1);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
