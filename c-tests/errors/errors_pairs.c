// Operations that the standard does not pair with a datatype are refused, and so are types that
// differ where they may not, and Compare_and_swap of numbers that are no integers.
// MPI-4.1 sections 12.3.4 and 6.9.2.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Datatype derived;
    double value = 1, got = -1;
    check_start(&argc, &argv);
    double *base = returning_window_of(64, 8, &win);
    int target = next_rank();
    OK(MPI_Win_lock_all(0, win));
    EXPECT(MPI_Accumulate(&value, 1, MPI_DOUBLE, target, 0, 1, MPI_DOUBLE, MPI_BAND, win),
           MPI_ERR_OP, MPI_ERR_TYPE);
    EXPECT(MPI_Fetch_and_op(&value, &got, MPI_DOUBLE, target, 0, MPI_BXOR, win), MPI_ERR_OP,
           MPI_ERR_TYPE);
    EXPECT(MPI_Accumulate(&value, 1, MPI_DOUBLE, target, 0, 1, MPI_DOUBLE, MPI_MAXLOC, win),
           MPI_ERR_OP, MPI_ERR_TYPE);
    EXPECT(MPI_Get_accumulate(&value, 8, MPI_BYTE, &got, 8, MPI_BYTE, target, 0, 8, MPI_BYTE,
                              MPI_SUM, win), MPI_ERR_OP, MPI_ERR_TYPE);
    EXPECT(MPI_Compare_and_swap(&value, &value, &got, MPI_DOUBLE, target, 0, win), MPI_ERR_TYPE);
    // The calls of one element take no derived datatypes.
    OK(MPI_Type_contiguous(1, MPI_LONG, &derived));
    OK(MPI_Type_commit(&derived));
    EXPECT(MPI_Fetch_and_op(&value, &got, derived, target, 0, MPI_REPLACE, win), MPI_ERR_TYPE);
    EXPECT(MPI_Compare_and_swap(&value, &value, &got, derived, target, 0, win), MPI_ERR_TYPE);
    OK(MPI_Type_free(&derived));
    // NO_OP belongs to the calls that fetch.
    EXPECT(MPI_Accumulate(&value, 1, MPI_DOUBLE, target, 0, 1, MPI_DOUBLE, MPI_NO_OP, win),
           MPI_ERR_OP);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(base[0] == 0 && got == -1);
    OK(MPI_Win_free(&win));
    return check_end();
}
