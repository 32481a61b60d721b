// The request of an operation may be freed instead of waited for, since MPI-4.1, and it may be waited
// for when the epoch is closed or the window is gone. MPI-4.1 section 12.3.5.
// ranks: 1 2

#include "created.h"

static void are_freed(MPI_Win win, const long *base)
{
    MPI_Request request;
    long value = 5 + rank;
    if (!library_is_here())
        return; // it was erroneous before
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    for (int i = 0; i < 100; i++) {
        OK(MPI_Rput(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win, &request));
        OK(MPI_Request_free(&request));
        CHECK(request == MPI_REQUEST_NULL);
    }
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(base[0], 5 + previous_rank());
}

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Request requests[3];
    long value, got = -1;
    check_start(&argc, &argv);
    value = 70 + rank;
    long *base = window_of(64, sizeof(long), &win);
    are_freed(win, base);
    base[2] = 90 + rank;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Rput(&value, 1, MPI_LONG, next_rank(), 1, 1, MPI_LONG, win, &requests[0]));
    OK(MPI_Rget(&got, 1, MPI_LONG, next_rank(), 2, 1, MPI_LONG, win, &requests[1]));
    OK(MPI_Rput(&value, 1, MPI_LONG, next_rank(), 3, 1, MPI_LONG, win, &requests[2]));
    OK(MPI_Win_unlock_all(win));
    CHECK_EQ(got, 90 + next_rank());
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(base[1] == 70 + previous_rank() && base[3] == 70 + previous_rank());
    OK(MPI_Win_free(&win));
    OK(MPI_Waitall(2, requests + 1, MPI_STATUSES_IGNORE));
    CHECK(requests[1] == MPI_REQUEST_NULL && requests[2] == MPI_REQUEST_NULL);
    return check_end();
}
