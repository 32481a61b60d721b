// Thousands of operations with a request are under way at once, to all ranks in turns, and are
// waited for in any order. MPI-4.1 section 12.3.5.
// ranks: 1 2 4 8
// plain ranks: 2

#include "check.h"

enum { MANY = 4000 };

static MPI_Win win;
static MPI_Request requests[2 * MANY];
static long values[MANY], got[MANY];

static int target_of(int i) { return (rank + i) % size; }

static MPI_Aint place_of(int i) { return (MPI_Aint)rank * MANY + i; }

static void put_all(long first)
{
    for (int i = 0; i < MANY; i++) {
        values[i] = first + i;
        OK(MPI_Rput(&values[i], 1, MPI_LONG, target_of(i), place_of(i), 1, MPI_LONG, win,
                    &requests[i]));
    }
}

static void get_all(MPI_Request *into)
{
    memset(got, 0, sizeof got);
    for (int i = 0; i < MANY; i++)
        OK(MPI_Rget(&got[i], 1, MPI_LONG, target_of(i), place_of(i), 1, MPI_LONG, win, &into[i]));
}

static void check_got(long first)
{
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(got[i], first + i);
}

// The last one first.
static void backwards(void)
{
    put_all(1000);
    for (int i = MANY - 1; i >= 0; i--)
        OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    OK(MPI_Win_flush_all(win));
    get_all(requests);
    for (int i = MANY - 1; i >= 0; i--)
        OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    check_got(1000);
}

// Whatever is done, until all are.
static void some_at_a_time(void)
{
    static int done[MANY];
    put_all(2000);
    for (int left = MANY, count; left > 0; left -= count) {
        OK(MPI_Testsome(MANY, requests, &count, done, MPI_STATUSES_IGNORE));
        CHECK(count != MPI_UNDEFINED);
    }
    OK(MPI_Win_flush_all(win));
    get_all(requests);
    for (int i = 0; i < MANY; i++) {
        int which;
        OK(MPI_Waitany(MANY, requests, &which, MPI_STATUS_IGNORE));
        CHECK(which >= 0 && which < MANY);
        CHECK_EQ(got[which], 2000 + which);
    }
}

// Flushed with all requests still open; then all are complete.
static void flushed(void)
{
    int all;
    put_all(3000);
    OK(MPI_Win_flush_all(win));
    get_all(requests + MANY);
    OK(MPI_Win_flush_all(win));
    check_got(3000);
    OK(MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Testall(2 * MANY, requests, &all, MPI_STATUSES_IGNORE));
    CHECK(all);
}

static void accumulated(void)
{
    static const long one = 1;
    put_all(4000);
    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Win_flush_all(win));
    for (int i = 0; i < MANY; i++)
        OK(MPI_Rget_accumulate(&one, 1, MPI_LONG, &got[i], 1, MPI_LONG, target_of(i), place_of(i),
                               1, MPI_LONG, MPI_SUM, win, &requests[i]));
    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    check_got(4000);
    get_all(requests);
    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    check_got(4001);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    window_of((MPI_Aint)size * MANY * (MPI_Aint)sizeof(long), sizeof(long), &win);
    OK(MPI_Win_lock_all(0, win));
    backwards();
    some_at_a_time();
    flushed();
    accumulated();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
