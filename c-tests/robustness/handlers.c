// Error handlers of the program, on windows of libfompi and on such that it leaves to the MPI
// underneath: they are called with the window's own handle; they live while a window has them, also
// after MPI_Errhandler_free; errors in creation go to the communicator's handler.

#include "robust.h"

static int window_calls, comm_calls, last_class;
static MPI_Win last_win;

static void on_win(MPI_Win *win, int *code, ...)
{
    window_calls++;
    last_win = *win;
    last_class = class_of(*code);
}

static void on_comm(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    comm_calls++;
    last_class = class_of(*code);
}

static void is_called(MPI_Win win, int calls)
{
    int64_t value = 0;
    window_calls = 0;
    OK(MPI_Win_fence(0, win));
    EXPECT(MPI_Put(&value, 1, MPI_INT64_T, size, 0, 1, MPI_INT64_T, win), MPI_ERR_RANK);
    CHECK(window_calls == calls);
    CHECK(calls == 0 || (last_win == win && last_class == MPI_ERR_RANK));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_call_errhandler(win, MPI_ERR_ARG));
    CHECK(window_calls == 2 * calls && (calls == 0 || last_class == MPI_ERR_ARG));
}

static void on_window(MPI_Win win)
{
    MPI_Errhandler handler, got;
    OK(MPI_Win_create_errhandler(on_win, &handler));
    OK(MPI_Win_set_errhandler(win, handler));
    OK(MPI_Win_get_errhandler(win, &got));
    CHECK(got == handler);
    OK(MPI_Errhandler_free(&got));
    is_called(win, 1);
    OK(MPI_Errhandler_free(&handler));
    CHECK(handler == MPI_ERRHANDLER_NULL);
    is_called(win, 1); // the window still has it
    OK(MPI_Win_get_errhandler(win, &got));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    is_called(win, 0);
    OK(MPI_Win_set_errhandler(win, got));
    OK(MPI_Errhandler_free(&got));
    is_called(win, 1);
    EXPECT(MPI_Win_set_errhandler(win, MPI_ERRHANDLER_NULL), MPI_ERR_ARG);
    window_calls = 0;
    is_called(win, 1); // a wrong call has changed nothing
}

// The same handler on two windows; one window is freed.
static void on_two(void)
{
    MPI_Errhandler handler;
    MPI_Win one, two;
    window_of(4, &one);
    window_of(4, &two);
    OK(MPI_Win_create_errhandler(on_win, &handler));
    OK(MPI_Win_set_errhandler(one, handler));
    OK(MPI_Win_set_errhandler(two, handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Win_free(&one));
    is_called(two, 1);
    OK(MPI_Win_free(&two));
}

static void at_creation(void)
{
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Win win;
    void *base;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(on_comm, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Errhandler_free(&handler));
    EXPECT(MPI_Win_allocate(-1, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_SIZE);
    CHECK(comm_calls == 1 && last_class == MPI_ERR_SIZE);
    OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, &base, &win));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    int64_t memory[4];
    start(30, &argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    window_of(4, &win);
    on_window(win);
    OK(MPI_Win_free(&win));
    if (MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win) == 0) {
        on_window(win);
        OK(MPI_Win_free(&win));
    }
    on_two();
    at_creation();
    return MPI_Finalize();
}
