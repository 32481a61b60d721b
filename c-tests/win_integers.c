// A window is one integer in C, in Fortran and in MPI_Win_toint, which is of MPI-5.0: an MPI without
// it has it with the library. MPI-4.1 section 19.3.4, MPI-5.0 section 20.3.
// ranks: 1 2

#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
    MPI_Win win, other;
    int (*to_int)(MPI_Win);
    MPI_Win (*from_int)(int);
    check_start(&argc, &argv);
    window_of(16, 1, &win);
    window_of(16, 1, &other);
    CHECK(MPI_Win_f2c(MPI_Win_c2f(win)) == win);
    CHECK(MPI_Win_c2f(win) != MPI_Win_c2f(other));
    *(void **)&to_int = dlsym(RTLD_DEFAULT, "MPI_Win_toint");
    *(void **)&from_int = dlsym(RTLD_DEFAULT, "MPI_Win_fromint");
    if (to_int != NULL && from_int != NULL) {
        CHECK(from_int(to_int(win)) == win);
        CHECK(to_int(win) != to_int(other));
        OK(MPI_Win_fence(0, from_int(to_int(other))));
    }
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&other));
    return check_end();
}
