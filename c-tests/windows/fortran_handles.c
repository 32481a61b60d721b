// A window handle goes to Fortran and back unchanged, the null window too. MPI-4.1 section 19.3.4.
// ranks: 1 2

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win wins[3], back;
    check_start(&argc, &argv);
    for (int i = 0; i < 3; i++)
        window_of(64, 1, &wins[i]);
    for (int i = 0; i < 3; i++) {
        MPI_Fint handle = MPI_Win_c2f(wins[i]);
        back = MPI_Win_f2c(handle);
        CHECK(back == wins[i]);
        CHECK_EQ(MPI_Win_c2f(back), handle);
        CHECK(handle != MPI_Win_c2f(MPI_WIN_NULL));
        OK(MPI_Win_fence(0, back));
    }
    CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
    for (int i = 0; i < 3; i++)
        OK(MPI_Win_free(&wins[i]));
    return check_end();
}
