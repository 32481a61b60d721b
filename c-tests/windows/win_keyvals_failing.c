// A window is not freed when the delete callback of one of its attributes fails, and is when it no
// longer does. MPI-4.1 sections 7.7.3 and 12.2.5.
// ranks: 2

#include "check.h"

static int calls, answer;

static int count(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win, (void)keyval, (void)value, (void)extra;
    calls++;
    return answer;
}

int main(int argc, char **argv)
{
    MPI_Win win;
    int value, keyval;
    check_start(&argc, &argv);
    int *memory = returning_window_of(64, 4, &win);
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count, &keyval, NULL));
    OK(MPI_Win_set_attr(win, keyval, &value));
    answer = MPI_ERR_OTHER;
    EXPECT(MPI_Win_free(&win), MPI_ERR_OTHER);
    CHECK(win != MPI_WIN_NULL);
    CHECK_EQ(calls, 1);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&rank, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(memory[0], previous_rank());
    answer = MPI_SUCCESS;
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
    OK(MPI_Win_free_keyval(&keyval));
    return check_end();
}
