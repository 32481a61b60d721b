// Keyvals that nobody made, that are freed, and the predefined ones, whose attributes nobody sets.
// MPI-4.1 section 7.7.3.
// ranks: 1 2

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win;
    int value, flag, none = MPI_KEYVAL_INVALID;
    void *found;
    check_start(&argc, &argv);
    returning_window_of(64, 4, &win);
    EXPECT(MPI_Win_set_attr(win, none, &value), MPI_ERR_KEYVAL);
    EXPECT(MPI_Win_get_attr(win, none, &found, &flag), MPI_ERR_KEYVAL);
    EXPECT(MPI_Win_delete_attr(win, none), MPI_ERR_KEYVAL);
    EXPECT(MPI_Win_set_attr(win, MPI_WIN_SIZE, &value), MPI_ERR_KEYVAL);
    EXPECT(MPI_Win_delete_attr(win, MPI_WIN_SIZE), MPI_ERR_KEYVAL);
    OK(MPI_Win_free(&win));
    return check_end();
}
