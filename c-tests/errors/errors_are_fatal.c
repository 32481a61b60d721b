// By default an error on a window ends the job, and what is printed names the call.
// MPI-4.1 section 12.6.1.
// ranks: 1 2
// settings: FOMPI_STRICT=1
// aborts: Put

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win;
    long value = 1;
    check_start(&argc, &argv);
    window_of(64, 8, &win);
    OK(MPI_Win_fence(0, win));
    MPI_Put(&value, 1, MPI_LONG, size, 0, 1, MPI_LONG, win);
    return check_end();
}
