// A driver of Level Zero that knows memory of its own contexts alone, and this library's context is
// another one than the program's: windows are left to the host MPI, which
// FOMPI_FALLBACK=error forbids. On 2 ranks.
// ranks: 2
// settings: FOMPI_FALLBACK=error CHECK_ZE_STRICT=1
// gpu: level_zero

#include "gpu.h"

int main(int argc, char **argv)
{
    void *base;
    MPI_Win win;
    check_start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    gpu_start("libze_loader.so.1");
    OK(MPI_Win_allocate(100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_free(&win)); // the program has not initialised the library
    gpu_allocate(DEVICE, 100);
    if (has_gpu())
        EXPECT(MPI_Win_allocate(100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win),
               MPI_ERR_UNSUPPORTED_OPERATION);
    return check_end();
}
