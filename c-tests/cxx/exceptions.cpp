// Exceptions that leave a call on a window: thrown by an error handler of the program, and by
// MPI::ERRORS_THROW_EXCEPTIONS. The window can be used afterwards. MPI-2.2 section 16.1.
// ranks: 2

#include <cstdio>
#include <mpi.h>

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    std::fprintf(stderr, "exceptions: %s\n", what);
    MPI::COMM_WORLD.Abort(1);
}

static void throw_code(MPI_Win *, int *code, ...) { throw *code; }

// A wrong call, which must end in an exception with the class of its error.
static void throws(MPI::Win &win, bool of_program)
{
    int code = MPI_SUCCESS;
    try {
        win.Lock(MPI_LOCK_SHARED, MPI::COMM_WORLD.Get_size(), 0);
    } catch (int thrown) {
        check(of_program, "an exception of the program");
        code = thrown;
    } catch (MPI::Exception &thrown) {
        check(!of_program, "an exception of the bindings");
        code = thrown.Get_error_code();
    }
    check(code != MPI_SUCCESS && MPI::Get_error_class(code) == MPI_ERR_RANK, "an exception");
}

int main(int argc, char **argv)
{
    MPI::Init(argc, argv);
    int *memory = static_cast<int *>(MPI::Alloc_mem(64, MPI::INFO_NULL));
    int next = (MPI::COMM_WORLD.Get_rank() + 1) % MPI::COMM_WORLD.Get_size(), item = 5;
    MPI::Win win = MPI::Win::Create(memory, 64, 4, MPI::INFO_NULL, MPI::COMM_WORLD);
    MPI_Errhandler handler;
    MPI_Win_create_errhandler(throw_code, &handler);
    for (int turn = 0; turn < 3; turn++) {
        MPI_Win_set_errhandler(win, handler);
        throws(win, true);
        win.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
#ifndef OPEN_MPI
        // Open MPI's bindings throw only where they were built so.
        throws(win, false);
#endif
        memory[turn] = 0;
        win.Fence(0);
        win.Put(&item, 1, MPI::INT, next, turn, 1, MPI::INT);
        win.Fence(MPI_MODE_NOSUCCEED);
        check(memory[turn] == 5, "a put after exceptions");
    }
    MPI_Errhandler_free(&handler);
    win.Free();
    MPI::Free_mem(memory);
    MPI::Finalize();
    return 0;
}
