// Callbacks of windows through the C++ bindings, which MPICH and Open MPI 4 still have: error
// handlers get the window and the code, delete callbacks the window, keyval, value and extra
// state. MPI-2.2 sections 6.7, 8.3 and 16.1.
// ranks: 1 2

#include <cstdio>
#include <cstdlib>
#include <mpi.h>

static MPI::Win expected;
static int handled, deleted, keyval, value, extra, last_code;

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    std::fprintf(stderr, "callbacks: %s\n", what);
    MPI::COMM_WORLD.Abort(1);
}

static void on_error(MPI::Win &win, int *code, ...)
{
    handled++;
    last_code = *code;
    check(win == expected, "the window of the error handler");
}

// Windows are not copied.
static int on_copy(const MPI::Win &, int, void *, void *, void *, bool &)
{
    check(false, "copied");
    return MPI_SUCCESS;
}

static int on_delete(MPI::Win &win, int number, void *attribute, void *state)
{
    deleted++;
    check(win == expected, "the window of the delete callback");
    check(number == keyval && attribute == &value && state == &extra, "its other arguments");
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI::Init(argc, argv);
    int *memory = static_cast<int *>(MPI::Alloc_mem(64, MPI::INFO_NULL));
    MPI::Win win = MPI::Win::Create(memory, 64, 4, MPI::INFO_NULL, MPI::COMM_WORLD);
    expected = win;

    MPI::Errhandler handler = MPI::Win::Create_errhandler(on_error);
    win.Set_errhandler(handler);
    handler.Free();
    win.Call_errhandler(MPI_ERR_OTHER);
    check(handled == 1 && last_code == MPI_ERR_OTHER, "Call_errhandler");
    int item = 1;
    win.Fence(0);
    MPI_Put(&item, 1, MPI_INT, MPI::COMM_WORLD.Get_size(), 0, 1, MPI_INT, win);
    check(handled == 2 && MPI::Get_error_class(last_code) == MPI_ERR_RANK, "an error of a put");
    win.Fence(MPI_MODE_NOSUCCEED);
    handler = win.Get_errhandler();
    win.Set_errhandler(handler);
    handler.Free();
    win.Call_errhandler(MPI_ERR_ARG);
    check(handled == 3 && last_code == MPI_ERR_ARG, "Call_errhandler of what Get_errhandler got");

    keyval = MPI::Win::Create_keyval(on_copy, on_delete, &extra);
    void *found;
    check(!win.Get_attr(keyval, &found), "not set yet");
    win.Set_attr(keyval, &value);
    check(win.Get_attr(keyval, &found) && found == &value, "is set");
    win.Delete_attr(keyval);
    check(deleted == 1, "Delete_attr");
    win.Set_attr(keyval, &value);
    int number = keyval;
    MPI::Win::Free_keyval(number);
    win.Free();
    check(deleted == 2, "Free");
    MPI::Free_mem(memory);
    MPI::Finalize();
    return 0;
}
