// Error handlers that the program makes: called with the window and the error code, of this window
// alone, also when the program has freed its handle; MPI_Win_get_errhandler gives the handler back.
// MPI-4.1 sections 9.3.2, 9.3.4 and 9.5.
// ranks: 1 2

#include "check.h"

static int calls, code;
static MPI_Win called_for;

static void note(MPI_Win *win, int *error, ...)
{
    called_for = *win;
    code = *error;
    calls++;
}

static int other_calls;

static void note_other(MPI_Win *win, int *error, ...)
{
    (void)win;
    (void)error;
    other_calls++;
}

// An error on `win` reaches `note`, with its class.
static void error_is_noted(MPI_Win win)
{
    int class, value = 1, before = calls;
    OK(MPI_Win_fence(0, win));
    EXPECT(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(calls, before + 1);
    CHECK(called_for == win);
    OK(MPI_Error_class(code, &class));
    CHECK_EQ(class, MPI_ERR_RANK);
}

int main(int argc, char **argv)
{
    MPI_Win win, other;
    MPI_Errhandler handler, other_handler, found;
    check_start(&argc, &argv);
    window_of(16, 1, &win);
    window_of(16, 1, &other);
    OK(MPI_Win_create_errhandler(note, &handler));
    OK(MPI_Win_create_errhandler(note_other, &other_handler));
    OK(MPI_Win_set_errhandler(win, handler));
    OK(MPI_Win_set_errhandler(other, other_handler));
    error_is_noted(win);
    OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
    CHECK_EQ(calls, 2);
    CHECK_EQ(code, MPI_ERR_OTHER);
    CHECK_EQ(other_calls, 0);
    OK(MPI_Win_call_errhandler(other, MPI_ERR_OTHER));
    CHECK_EQ(other_calls, 1);

    OK(MPI_Win_get_errhandler(win, &found));
    CHECK(found == handler);
    OK(MPI_Errhandler_free(&found));
    CHECK(found == MPI_ERRHANDLER_NULL);
    OK(MPI_Errhandler_free(&handler));
    CHECK(handler == MPI_ERRHANDLER_NULL);
    // The window has it still, and can give it to another one.
    error_is_noted(win);
    OK(MPI_Win_get_errhandler(win, &found));
    OK(MPI_Win_set_errhandler(other, found));
    OK(MPI_Errhandler_free(&found));
    OK(MPI_Errhandler_free(&other_handler));
    OK(MPI_Win_free(&win));
    error_is_noted(other);
    CHECK_EQ(other_calls, 1);
    OK(MPI_Win_free(&other));
    return check_end();
}
