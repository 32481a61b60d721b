// Every call that moves data, on a window over a given piece of memory, and what it leaves there.
// Each rank works on the window of the next one.

#ifndef EVERY_CALL_H
#define EVERY_CALL_H

#include "created.h"

// The window is in the middle, GUARD longs before and after it do not belong to it.
enum { LONGS = 1024, GUARD = 64, TOTAL = LONGS + 2 * GUARD, HALF = LONGS / 2, LAST = LONGS - 1 };

static const long untouched = 0x5555555555555555;

// What the window of a rank holds in the end, when `mark` belongs to its origin.
static long result(long mark, int i)
{
    if (i == LAST)
        return -mark;
    if (i >= 10 && i < 20)
        return 2 * mark + i;
    return mark + i + (i < HALF ? 7 : 11) + (i == 5 ? 16 : 0);
}

static void accumulates(MPI_Win win, int target, long mark)
{
    static long ones[LONGS], twos[LONGS], fours[HALF], eights[HALF], got[LONGS];
    for (int i = 0; i < LONGS; i++) {
        ones[i] = 1;
        twos[i] = 2;
        fours[i % HALF] = 4;
        eights[i % HALF] = 8;
    }
    OK(MPI_Accumulate(ones, LONGS, MPI_LONG, target, 0, LONGS, MPI_LONG, MPI_SUM, win));
    OK(MPI_Get_accumulate(twos, LONGS, MPI_LONG, got, LONGS, MPI_LONG, target, 0, LONGS, MPI_LONG,
                          MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(got[i], mark + i + 1);
    MPI_Request requests[2];
    OK(MPI_Raccumulate(fours, HALF, MPI_LONG, target, 0, HALF, MPI_LONG, MPI_SUM, win,
                       &requests[0]));
    OK(MPI_Rget_accumulate(eights, HALF, MPI_LONG, got, HALF, MPI_LONG, target, HALF, HALF,
                           MPI_LONG, MPI_SUM, win, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < HALF; i++)
        CHECK_EQ(got[i], mark + HALF + i + 3);
    OK(MPI_Win_flush(target, win));
}

static void single_words(MPI_Win win, int target, long mark)
{
    const long sixteen = 16, current = mark + LAST + 11, other = -mark;
    long before = 0;
    OK(MPI_Fetch_and_op(&sixteen, &before, MPI_LONG, target, 5, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(before, mark + 5 + 7);
    OK(MPI_Compare_and_swap(&other, &mark, &before, MPI_LONG, target, LAST, win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(before, current);
    OK(MPI_Compare_and_swap(&other, &current, &before, MPI_LONG, target, LAST, win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(before, current);
}

static void operations(MPI_Win win, int target, long mark)
{
    static long values[LONGS], got[LONGS];
    MPI_Request request;
    for (int i = 0; i < LONGS; i++)
        values[i] = mark + i;
    OK(MPI_Put(values, LONGS, MPI_LONG, target, 0, LONGS, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    accumulates(win, target, mark);
    single_words(win, target, mark);
    for (int i = 10; i < 20; i++)
        values[i] = 2 * mark + i;
    OK(MPI_Rput(values + 10, 10, MPI_LONG, target, 10, 10, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Rget(got, LONGS, MPI_LONG, target, 0, LONGS, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(got[i], result(mark, i));
    memset(got, 0, sizeof got);
    OK(MPI_Get(got, LONGS, MPI_LONG, target, 0, LONGS, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(got[i], result(mark, i));
}

// Each rank works on the next one. `memory` holds TOTAL longs.
UNUSED static void try(const char *kind, long *memory)
{
    for (int i = 0; i < TOTAL; i++)
        memory[i] = untouched;
    MPI_Win win = window_over(memory + GUARD, LONGS * sizeof(long), sizeof(long));
    OK(MPI_Win_lock_all(0, win));
    operations(win, next_rank(), 10000 * (rank + 1));
    OK(MPI_Win_unlock_all(win));
    lock_own_memory(win);
    for (int i = 0; i < TOTAL; i++) {
        int inside = i >= GUARD && i < GUARD + LONGS;
        long want = inside ? result(10000 * (previous_rank() + 1), i - GUARD) : untouched;
        if (memory[i] != want)
            check_failed(__FILE__, __LINE__, "%s: long %d is %ld, not %ld", kind, i - GUARD,
                         memory[i], want);
    }
    unlock_own_memory(win);
    OK(MPI_Win_free(&win));
}

#endif
