// MPI_Win_post and MPI_Win_start refuse what is no group of processes of the window, and the window
// goes on. MPI-4.1 sections 9.4 and 12.5.2.
// ranks: 2 4
// settings: FOMPI_STRICT=1

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Comm half;
    MPI_Group world, other, empty = MPI_GROUP_EMPTY;
    int *base;
    check_start_within(30, &argc, &argv);
    const int side = rank % 2;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half));
    // All that are not in this window.
    int members[64], count = 0;
    for (int i = 0; i < size; i++)
        if (i % 2 != side)
            members[count++] = i;
    OK(MPI_Group_incl(world, count, members, &other));
    OK(MPI_Win_allocate(64, 4, MPI_INFO_NULL, half, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    EXPECT(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    EXPECT(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    EXPECT(MPI_Win_post(other, 0, win), MPI_ERR_GROUP, MPI_ERR_RANK);
    EXPECT(MPI_Win_start(other, 0, win), MPI_ERR_GROUP, MPI_ERR_RANK);
    EXPECT(MPI_Win_start(world, 0, win), MPI_ERR_GROUP, MPI_ERR_RANK);
    // Nothing has begun; empty groups are groups.
    OK(MPI_Win_post(empty, 0, win));
    OK(MPI_Win_start(empty, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&world));
    OK(MPI_Comm_free(&half));
    return check_end();
}
