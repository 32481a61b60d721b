// A derived datatype that was never committed is refused, and moves nothing.
// MPI-4.1 sections 5.1.9 and 12.3.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Datatype raw;
    long values[2] = {7, 7};
    check_start(&argc, &argv);
    long *base = returning_window_of(64, sizeof(long), &win);
    int target = next_rank();
    OK(MPI_Type_contiguous(2, MPI_LONG, &raw));
    OK(MPI_Win_lock_all(0, win));
    EXPECT(MPI_Put(values, 1, raw, target, 0, 2, MPI_LONG, win), MPI_ERR_TYPE);
    EXPECT(MPI_Put(values, 2, MPI_LONG, target, 0, 1, raw, win), MPI_ERR_TYPE);
    EXPECT(MPI_Get(values, 2, MPI_LONG, target, 0, 1, raw, win), MPI_ERR_TYPE);
    OK(MPI_Type_commit(&raw));
    OK(MPI_Put(values, 1, raw, target, 2, 1, raw, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(base[0], 0);
    CHECK_EQ(base[2], 7);
    OK(MPI_Type_free(&raw));
    OK(MPI_Win_free(&win));
    return check_end();
}
