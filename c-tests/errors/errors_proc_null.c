// Arguments that are wrong by themselves are errors for MPI_PROC_NULL too, where nothing would
// move: a program that is right at the border of its grid only by luck hears of it.
// MPI-4.1 sections 12.3 and 12.6.2.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

int main(int argc, char **argv)
{
    const int null = MPI_PROC_NULL;
    long value = 7, got = -1;
    MPI_Win win;
    MPI_Request request;
    check_start(&argc, &argv);
    returning_window_of(64, sizeof(long), &win);
    OK(MPI_Win_lock_all(0, win));
    EXPECT(MPI_Put(&value, -1, MPI_LONG, null, 0, 1, MPI_LONG, win), MPI_ERR_COUNT);
    EXPECT(MPI_Get(&got, 1, MPI_LONG, null, 0, -1, MPI_LONG, win), MPI_ERR_COUNT);
    EXPECT(MPI_Put(&value, 1, MPI_DATATYPE_NULL, null, 0, 1, MPI_LONG, win), MPI_ERR_TYPE);
    EXPECT(MPI_Accumulate(&value, -1, MPI_LONG, null, 0, 1, MPI_LONG, MPI_SUM, win),
           MPI_ERR_COUNT);
    EXPECT(MPI_Accumulate(&value, 1, MPI_LONG, null, 0, 1, MPI_LONG, MPI_OP_NULL, win),
           MPI_ERR_OP);
    EXPECT(MPI_Fetch_and_op(&value, &got, MPI_DATATYPE_NULL, null, 0, MPI_SUM, win),
           MPI_ERR_TYPE);
    EXPECT(MPI_Compare_and_swap(&value, &value, &got, MPI_DATATYPE_NULL, null, 0, win),
           MPI_ERR_TYPE);
    EXPECT(MPI_Rput(&value, -1, MPI_LONG, null, 0, 1, MPI_LONG, win, &request), MPI_ERR_COUNT);
    CHECK_EQ(got, -1);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
