// The group of a window is that of its communicator, in the same order, and belongs to the caller.
// MPI-4.1 section 12.2.6.
// ranks: 1 2 4

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Comm reversed;
    MPI_Group of_comm, of_win, world;
    MPI_Win win;
    void *base;
    int result, place, world_place, ranks;
    check_start(&argc, &argv);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed));
    OK(MPI_Win_allocate(16, 1, MPI_INFO_NULL, reversed, &base, &win));
    OK(MPI_Comm_group(reversed, &of_comm));
    OK(MPI_Comm_free(&reversed));

    OK(MPI_Win_get_group(win, &of_win));
    OK(MPI_Group_compare(of_comm, of_win, &result));
    CHECK_EQ(result, MPI_IDENT);
    OK(MPI_Group_size(of_win, &ranks));
    CHECK_EQ(ranks, size);
    OK(MPI_Group_rank(of_win, &place));
    CHECK_EQ(place, size - 1 - rank);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_translate_ranks(of_win, 1, &place, world, &world_place));
    CHECK_EQ(world_place, rank);

    // Freeing the answer does not harm the window.
    OK(MPI_Group_free(&of_win));
    OK(MPI_Win_get_group(win, &of_win));
    OK(MPI_Win_free(&win));
    OK(MPI_Group_compare(of_comm, of_win, &result));
    CHECK_EQ(result, MPI_IDENT);
    OK(MPI_Group_free(&of_win));
    OK(MPI_Group_free(&of_comm));
    OK(MPI_Group_free(&world));
    return check_end();
}
