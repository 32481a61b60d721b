// Exceptions that leave a call which makes a window: thrown by the error handler of the communicator,
// also where the host MPI finds the error. Nothing that the call had taken is lost: as many
// calls fail as windows can be alive at once, and one more succeeds. MPI-4.1 section 9.3.1.
// ranks: 2
// between nodes: it is the host MPI that has to find the error.

#include <cstdio>
#include <cstdlib>
#include <mpi.h>

static const int FAILURES = 70000;

static void throw_code(MPI_Comm *, int *code, ...) { throw *code; }

// Makes windows with a wrong unit; each call must end in an exception.
static int thrown(MPI_Comm comm, int *memory, int times)
{
    int count = 0;
    for (int turn = 0; turn < times; turn++) {
        MPI_Win win;
        try {
            MPI_Win_create(memory, 64, 0, MPI_INFO_NULL, comm, &win);
        } catch (int code) {
            int error_class;
            MPI_Error_class(code, &error_class);
            count += error_class == MPI_ERR_DISP;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    setenv("FOMPI_RANKS_PER_NODE", "1", 1);
    setenv("FOMPI_NET", "off", 1);
    setenv("FOMPI_FALLBACK", "quiet", 1);
    MPI_Init(&argc, &argv);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(throw_code, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    int memory[16] = {0};
    int alone = thrown(MPI_COMM_SELF, memory, 100), all = thrown(MPI_COMM_WORLD, memory, FAILURES);
    if (alone != 100 || all != FAILURES)
        std::fprintf(stderr, "exceptions_creation: %d and %d exceptions\n", alone, all);
    MPI_Win win;
    MPI_Win_create(memory, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_free(&win);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return 0;
}
