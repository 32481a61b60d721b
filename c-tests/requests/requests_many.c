// Hundreds of requests at once, transfers of any length, and requests that the end of their epoch
// completes before anyone waits for them. MPI-4.1 section 12.3.5.
// ranks: 2 4

#include "check.h"

enum { MANY = 500, LONG = 25 * 25 * 25 };

static void many_at_once(MPI_Win win)
{
    static MPI_Request request[2 * MANY];
    static int values[MANY], got[MANY];
    for (int i = 0; i < MANY; i++) {
        values[i] = 1000 * rank + i;
        OK(MPI_Rput(&values[i], 1, MPI_INT, next_rank(), i, 1, MPI_INT, win, &request[i]));
    }
    OK(MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE));
    OK(MPI_Win_flush(next_rank(), win));
    for (int i = 0; i < MANY; i++)
        OK(MPI_Rget(&got[i], 1, MPI_INT, next_rank(), i, 1, MPI_INT, win, &request[i]));
    OK(MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(got[i], values[i]);
}

// A buffer may be used for something else when the request of its put is complete, however long it
// is, and a get has brought everything then.
static void buffers_of_any_length(MPI_Win win)
{
    static int values[LONG], got[LONG];
    MPI_Request request;
    for (int count = 1; count <= LONG; count *= 25) {
        for (int i = 0; i < count; i++)
            values[i] = 7 * count + i;
        OK(MPI_Rput(values, count, MPI_INT, next_rank(), 0, count, MPI_INT, win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        memset(values, -1, sizeof values);
        OK(MPI_Win_flush(next_rank(), win));
        OK(MPI_Rget(got, count, MPI_INT, next_rank(), 0, count, MPI_INT, win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < count; i++)
            CHECK_EQ(got[i], 7 * count + i);
    }
}

// The unlock completes the operation; the request is still there to be completed.
static void waited_for_after_the_epoch(MPI_Win win)
{
    MPI_Request request;
    int value = 31 + rank, got = -1;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Rput(&value, 1, MPI_INT, next_rank(), 3, 1, MPI_INT, win, &request));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Rget(&got, 1, MPI_INT, next_rank(), 3, 1, MPI_INT, win, &request));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(got, value);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    window_of(4 * LONG, sizeof(int), &win);
    OK(MPI_Win_lock_all(0, win));
    many_at_once(win);
    buffers_of_any_length(win);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    waited_for_after_the_epoch(win);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return check_end();
}
