// A handle that was kept after its window was freed is refused though more windows have been made
// since than can be alive at once. MPI-4.1 sections 9.4 and 12.2.5.
// ranks: 1

#include "check.h"

enum { WINDOWS = 66000, LOOK = 1000 };

int main(int argc, char **argv)
{
    MPI_Win win, kept;
    int memory = 0;
    check_start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (int i = 0; i < WINDOWS; i++) {
        OK(MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win));
        if (i == 0)
            kept = win;
        else
            CHECK(win != kept);
        // The kept one is always that of a window that was freed.
        if (i > 0 && (i % LOOK == 0 || i > WINDOWS - LOOK)) {
            OK(MPI_Win_sync(win)); // from now on its calls are quick
            EXPECT(MPI_Win_fence(0, kept), MPI_ERR_WIN);
            EXPECT(MPI_Win_sync(kept), MPI_ERR_WIN);
        }
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
