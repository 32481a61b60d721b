// A PMPI profiling library is linked with the program, so the library under test, which is preloaded,
// comes before it. It sees each call of the program once all the same. MPI-4.1 section 15.2.
// ranks: 1 2 4
// linked: counter

#include "check.h"

// From profiler/counter.c, which is linked with this program.
int profiler_count(const char *call);

int main(int argc, char **argv)
{
    MPI_Win win;
    int value, got = -1;
    check_start(&argc, &argv);
    value = 5 + rank;
    int *base = window_of(64, sizeof(int), &win);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[0], 5 + previous_rank());
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Get(&got, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(got, value);
    OK(MPI_Win_free(&win));
    CHECK_EQ(profiler_count("Win_allocate"), 1);
    CHECK_EQ(profiler_count("Win_fence"), 3);
    CHECK_EQ(profiler_count("Put"), 1);
    CHECK_EQ(profiler_count("Get"), 1);
    CHECK_EQ(profiler_count("Win_lock"), 1);
    CHECK_EQ(profiler_count("Win_unlock"), 1);
    CHECK_EQ(profiler_count("Win_free"), 1);
    return check_end();
}
