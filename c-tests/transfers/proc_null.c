// MPI_PROC_NULL is a legal target of every communication call and moves nothing; requests for it
// complete. MPI-4.1 section 12.3.
// ranks: 1 2

#include "check.h"

static long mine[4] = {1, 2, 3, 4}, result[4] = {-1, -2, -3, -4};

static void moves(MPI_Win win)
{
    const int null = MPI_PROC_NULL;
    OK(MPI_Put(mine, 4, MPI_LONG, null, 0, 4, MPI_LONG, win));
    OK(MPI_Get(result, 4, MPI_LONG, null, 0, 4, MPI_LONG, win));
    OK(MPI_Accumulate(mine, 4, MPI_LONG, null, 0, 4, MPI_LONG, MPI_SUM, win));
    OK(MPI_Get_accumulate(mine, 4, MPI_LONG, result, 4, MPI_LONG, null, 0, 4, MPI_LONG, MPI_SUM,
                          win));
    OK(MPI_Fetch_and_op(mine, result, MPI_LONG, null, 0, MPI_SUM, win));
    OK(MPI_Compare_and_swap(mine, mine + 1, result, MPI_LONG, null, 0, win));
    // Not even a place outside every window matters.
    OK(MPI_Put(mine, 4, MPI_LONG, null, 1 << 20, 4, MPI_LONG, win));
}

static void requests(MPI_Win win)
{
    const int null = MPI_PROC_NULL;
    MPI_Request request[4];
    OK(MPI_Rput(mine, 4, MPI_LONG, null, 0, 4, MPI_LONG, win, &request[0]));
    OK(MPI_Rget(result, 4, MPI_LONG, null, 0, 4, MPI_LONG, win, &request[1]));
    OK(MPI_Raccumulate(mine, 4, MPI_LONG, null, 0, 4, MPI_LONG, MPI_SUM, win, &request[2]));
    OK(MPI_Rget_accumulate(mine, 4, MPI_LONG, result, 4, MPI_LONG, null, 0, 4, MPI_LONG, MPI_SUM,
                           win, &request[3]));
    OK(MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 4; i++)
        CHECK(request[i] == MPI_REQUEST_NULL);
}

static void nothing_moved(const long *base)
{
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(base[i], 0);
        CHECK_EQ(mine[i], i + 1);
        CHECK_EQ(result[i], -(i + 1));
    }
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    long *base = window_of(64, sizeof(long), &win);
    OK(MPI_Win_fence(0, win));
    moves(win);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    moves(win);
    requests(win);
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Win_lock_all(0, win));
    moves(win);
    requests(win);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    nothing_moved(base);
    OK(MPI_Win_free(&win));
    return check_end();
}
