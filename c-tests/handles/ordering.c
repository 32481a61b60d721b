// Order without completion, completion on several windows, and completion by all ranks within an epoch: what a
// rank sends behind FOMPI_Win_order takes effect behind what it sent before, FOMPI_Win_nflush completes on each
// window, and behind FOMPI_Complete_collective each rank sees what all have sent. Issues 135 and 47 of the
// MPI Forum. The plain MPI has none.
// ranks: 1 2 4

#include "handles.h"
#include "../include/fompi.h"

#pragma weak FOMPI_Win_order
#pragma weak FOMPI_Win_nflush
#pragma weak fompi_get_verbs_counts

enum { COUNT = 2000, ROUNDS = 300, WINDOWS = 4 };

static long *bases[WINDOWS];
static MPI_Win wins[WINDOWS];

static void make(void)
{
    const MPI_Aint bytes = (COUNT + 2) * (MPI_Aint)sizeof(long);
    for (int i = 0; i < WINDOWS; i++) {
        if (i % 2 == 0) {
            OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &bases[i], &wins[i]));
        } else { // the heap of the program
            bases[i] = malloc(bytes);
            OK(MPI_Win_create(bases[i], bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &wins[i]));
        }
        OK(MPI_Win_set_errhandler(wins[i], MPI_ERRORS_RETURN));
        memset(bases[i], 0, bytes);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_lock_all(0, wins[i]));
    }
}

static long loaded(MPI_Win win, const long *at)
{
    OK(MPI_Win_sync(win));
    return *(const volatile long *)at;
}

// Each rank writes an array, then a word that says which one, to the next rank, which polls the word; or the
// word first, which is small, and the array is polled.
static void check_order(int kind, int all)
{
    long *base = bases[kind], values[COUNT];
    const MPI_Win win = wins[kind];
    for (long round = 1; round <= ROUNDS; round++) {
        const int is_word_first = round % 2, polled = is_word_first ? COUNT - 1 : COUNT;
        for (int i = 0; i < COUNT; i++)
            values[i] = round;
        if (is_word_first)
            OK(MPI_Put(&round, 1, MPI_LONG, next_rank(), COUNT, 1, MPI_LONG, win));
        else
            OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, win));
        OK(FOMPI_Win_order(all ? FOMPI_ALL_RANKS : next_rank(), win));
        if (is_word_first)
            OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, win));
        else
            OK(MPI_Put(&round, 1, MPI_LONG, next_rank(), COUNT, 1, MPI_LONG, win));
        while (loaded(win, &base[polled]) != round)
            ;
        if (is_word_first)
            CHECK_EQ(base[COUNT], round);
        else
            for (int i = 0; i < COUNT; i += 7)
                CHECK_EQ(base[i], round);
        OK(FOMPI_Complete_collective(win));
    }
    base[COUNT] = 0;
    OK(FOMPI_Complete_collective(win));
}

// Accumulates before, a put behind: the sum is there when the put is. And the other way round.
static void check_accumulates(int kind)
{
    const long one = 1;
    long *base = bases[kind];
    const MPI_Win win = wins[kind];
    base[0] = base[1] = base[2] = base[3] = 0;
    OK(FOMPI_Complete_collective(win));
    for (long round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < size; i++)
            OK(MPI_Accumulate(&one, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, MPI_SUM, win));
        OK(FOMPI_Win_order(next_rank(), win));
        OK(MPI_Put(&round, 1, MPI_LONG, next_rank(), 1, 1, MPI_LONG, win));
        while (loaded(win, &base[1]) < round)
            ;
        CHECK(base[0] >= size * round);
        OK(MPI_Put(&round, 1, MPI_LONG, next_rank(), 2, 1, MPI_LONG, win));
        OK(FOMPI_Win_order(next_rank(), win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, next_rank(), 3, 1, MPI_LONG, MPI_SUM, win));
        while (loaded(win, &base[3]) < round)
            ;
        CHECK(*(const volatile long *)&base[2] >= round);
    }
    OK(FOMPI_Complete_collective(win));
    CHECK_EQ(base[0], (long)size * ROUNDS);
}

static void check_collective(int kind)
{
    const MPI_Win win = wins[kind];
    for (int target = 0; target < size; target++) {
        const long mine = 100 * target + rank;
        OK(MPI_Put(&mine, 1, MPI_LONG, target, 10 + rank, 1, MPI_LONG, win));
    }
    OK(FOMPI_Complete_collective(win));
    for (int origin = 0; origin < size; origin++)
        CHECK_EQ(bases[kind][10 + origin], 100 * rank + origin);
    OK(FOMPI_Complete_collective(win));
}

static long waits(void)
{
    fompi_verbs_counts counts;
    return fompi_get_verbs_counts(&counts) ? (long)counts.waits : 0;
}

// A put on each window, then one call. Windows of the same processes share their connections.
static void check_several(int target)
{
    long values[WINDOWS];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < WINDOWS; i++) {
        values[i] = 1000 * i + rank;
        OK(MPI_Put(&values[i], 1, MPI_LONG, next_rank(), 20, 1, MPI_LONG, wins[i]));
    }
    const long before = waits();
    OK(FOMPI_Win_nflush(target, WINDOWS, wins));
    CHECK(waits() - before <= 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < WINDOWS; i++)
        CHECK_EQ(loaded(wins[i], &bases[i][20]), 1000 * i + previous_rank());
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void check_errors(void)
{
    MPI_Win closed;
    long *base;
    OK(FOMPI_Win_order(MPI_PROC_NULL, wins[0]));
    OK(FOMPI_Win_nflush(MPI_PROC_NULL, 1, wins));
    OK(FOMPI_Win_nflush(0, 0, NULL));
    EXPECT(FOMPI_Win_order(size, wins[0]), MPI_ERR_RANK);
    EXPECT(FOMPI_Win_nflush(size, WINDOWS, wins), MPI_ERR_RANK);
    OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &closed));
    OK(MPI_Win_set_errhandler(closed, MPI_ERRORS_RETURN));
    EXPECT(FOMPI_Win_order(0, closed), MPI_ERR_RMA_SYNC);
    EXPECT(FOMPI_Win_nflush(0, 1, &closed), MPI_ERR_RMA_SYNC);
    // An error of any of the windows is that of the call.
    MPI_Win both[2] = {wins[0], closed};
    EXPECT(FOMPI_Win_nflush(0, 2, both), MPI_ERR_RMA_SYNC);
    OK(FOMPI_Win_order(FOMPI_ALL_RANKS, closed));
    OK(FOMPI_Complete_collective(closed));
    // The lock of one rank alone: another rank is not open.
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, closed));
    OK(FOMPI_Win_order(next_rank(), closed));
    if (size > 2)
        EXPECT(FOMPI_Win_order(previous_rank(), closed), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_unlock(next_rank(), closed));
    OK(MPI_Win_free(&closed));
}

int main(int argc, char **argv)
{
    check_start_within(60, &argc, &argv);
    if (FOMPI_Win_order != NULL) {
        make();
        for (int kind = 0; kind < 2; kind++) {
            check_order(kind, 0);
            check_order(kind, 1);
            check_accumulates(kind);
            check_collective(kind);
        }
        check_several(next_rank());
        check_several(FOMPI_ALL_RANKS);
        check_errors();
        for (int i = 0; i < WINDOWS; i++) {
            OK(MPI_Win_unlock_all(wins[i]));
            OK(MPI_Win_free(&wins[i]));
            if (i % 2)
                free(bases[i]);
        }
    }
    return check_end();
}
