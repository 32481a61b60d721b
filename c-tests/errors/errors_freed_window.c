// A handle that was kept after its window was freed is refused, also once another window has taken
// its place. MPI-4.1 sections 9.4 and 12.2.5.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win, kept, other;
    long value = 1;
    check_start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    window_of(64, 8, &win);
    kept = win;
    OK(MPI_Win_free(&win));
    EXPECT(MPI_Win_fence(0, kept), MPI_ERR_WIN);
    EXPECT(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, kept), MPI_ERR_WIN);
    window_of(64, 8, &other);
    CHECK(other != kept);
    EXPECT(MPI_Win_fence(0, kept), MPI_ERR_WIN);
    EXPECT(MPI_Win_free(&kept), MPI_ERR_WIN);
    OK(MPI_Win_fence(0, other));
    OK(MPI_Win_fence(0, other));
    OK(MPI_Win_free(&other));
    return check_end();
}
