// MPIX_Win_create_errhandler_x of MPICH 5: an error handler with state of its own, which gets the
// window by value; the state is destroyed after the last use. Where a program finds the function,
// it works, on any MPI.
// ranks: 1 2

#include "created.h"

#include <dlfcn.h>

typedef void handler_function(MPI_Win, int, void *);
typedef void destructor_function(void *);
typedef int create_function(handler_function *, destructor_function *, void *, MPI_Errhandler *);

struct state {
    int calls, code, destroyed;
    MPI_Win win;
};

static void note(MPI_Win win, int code, void *extra)
{
    struct state *state = extra;
    state->calls++;
    state->code = code;
    state->win = win;
}

static void destroy(void *extra) { ((struct state *)extra)->destroyed++; }

static void two_windows(create_function *create)
{
    struct state state = {0};
    MPI_Errhandler handler, got;
    MPI_Win win, other;
    window_of(8, 1, &win);
    window_of(8, 1, &other);
    OK(create(note, destroy, &state, &handler));
    OK(MPI_Win_set_errhandler(win, handler));
    OK(MPI_Win_set_errhandler(other, handler));
    OK(MPI_Errhandler_free(&handler));
    CHECK(handler == MPI_ERRHANDLER_NULL && !state.destroyed);
    // An MPI need not check its arguments.
    if (library_is_here())
        CHECK_EQ(MPI_Win_unlock(rank, win), state.code);
    else
        OK(MPI_Win_call_errhandler(win, MPI_ERR_WIN));
    CHECK_EQ(state.calls, 1);
    CHECK(state.win == win && state.code != MPI_SUCCESS);
    OK(MPI_Win_call_errhandler(other, MPI_ERR_OTHER));
    CHECK_EQ(state.calls, 2);
    CHECK_EQ(state.code, MPI_ERR_OTHER);
    CHECK(state.win == other);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_get_errhandler(other, &got));
    OK(MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN));
    CHECK(!state.destroyed);
    OK(MPI_Errhandler_free(&got));
    CHECK_EQ(state.destroyed, 1);
    OK(MPI_Win_free(&other));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    create_function *create = (create_function *)dlsym(RTLD_DEFAULT, "MPIX_Win_create_errhandler_x");
    if (create != NULL)
        two_windows(create);
    return check_end();
}
