// A displacement unit of more than 2^31 bytes, of a window over the program's own memory.
// MPI-4.1 sections 12.2.1 and 12.2.6.
// ranks: 1 2

#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
#if MPI_VERSION >= 4
    MPI_Win win;
    long mine = 0, value = 7;
    OK(MPI_Win_create_c(&mine, sizeof mine, (MPI_Aint)1 << 32, MPI_INFO_NULL, MPI_COMM_WORLD,
                        &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(mine, 7);
    // What is no int is not told as another one.
    int *unit, flag;
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag));
    CHECK(flag);
    CHECK_EQ(*unit, MPI_UNDEFINED);
    OK(MPI_Win_free(&win));
#endif
    return check_end();
}
