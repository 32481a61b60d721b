// A run-time library of a GPU that does not say where memory is: windows are left to the MPI
// underneath, which FOMPI_FALLBACK=error forbids. On 2 ranks.
// ranks: 2
// settings: FOMPI_FALLBACK=error
// gpu: cuda_bare

#include "gpu.h"

int main(int argc, char **argv)
{
    void *base;
    MPI_Win win;
    check_start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Win_allocate(100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_free(&win));
    if (has_gpu()) {
        gpu_load("bare/libcuda.so.1");
        EXPECT(MPI_Win_allocate(100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win),
               MPI_ERR_UNSUPPORTED_OPERATION);
    }
    return check_end();
}
