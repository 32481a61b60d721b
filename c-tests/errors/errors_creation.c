// Wrong arguments of window creation return through the error handler of the communicator.
// MPI-4.1 sections 12.2 and 12.6.1.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

// What is no info object, in each ABI.
#ifdef OPEN_MPI
#define NO_INFO NULL
#else
#define NO_INFO ((MPI_Info)MPI_COMM_WORLD)
#endif

int main(int argc, char **argv)
{
    MPI_Comm comm;
    MPI_Win win = MPI_WIN_NULL;
    void *base;
    check_start(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    EXPECT(MPI_Win_allocate(-8, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_SIZE);
    EXPECT(MPI_Win_allocate(64, 0, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_DISP, MPI_ERR_ARG);
    EXPECT(MPI_Win_allocate(64, -4, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_DISP, MPI_ERR_ARG);
    // Over several nodes there are no shared windows.
    EXPECT(MPI_Win_allocate_shared(-8, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win), MPI_ERR_SIZE);
    EXPECT(MPI_Win_allocate_shared(64, 0, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win), MPI_ERR_DISP,
           MPI_ERR_ARG);
    EXPECT(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win), MPI_ERR_COMM);
    EXPECT(MPI_Win_allocate(64, 1, NO_INFO, comm, &base, &win), MPI_ERR_INFO);
    EXPECT(MPI_Win_create_dynamic(NO_INFO, comm, &win), MPI_ERR_INFO);
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, comm, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    EXPECT(MPI_Win_set_info(win, NO_INFO), MPI_ERR_INFO);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&comm));
    return check_end();
}
