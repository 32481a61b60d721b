// A window has no name at first, and keeps the one it is given, up to the longest that MPI allows.
// MPI-4.1 section 7.8.
// ranks: 1 2

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win, other;
    char name[MPI_MAX_OBJECT_NAME], longest[MPI_MAX_OBJECT_NAME];
    int length = -1;
    check_start(&argc, &argv);
    window_of(16, 1, &win);
    window_of(16, 1, &other);

    OK(MPI_Win_get_name(win, name, &length));
    CHECK_EQ(length, 0);
    CHECK(name[0] == '\0');
    OK(MPI_Win_set_name(win, "halo of the left neighbour"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(strcmp(name, "halo of the left neighbour") == 0);
    CHECK_EQ(length, (int)strlen(name));
    OK(MPI_Win_get_name(other, name, &length));
    CHECK_EQ(length, 0);

    memset(longest, 'x', sizeof longest);
    longest[MPI_MAX_OBJECT_NAME - 1] = '\0';
    OK(MPI_Win_set_name(win, longest));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK_EQ(length, MPI_MAX_OBJECT_NAME - 1);
    CHECK(strcmp(name, longest) == 0);
    OK(MPI_Win_set_name(win, ""));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK_EQ(length, 0);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&other));
    return check_end();
}
