// Windows over memory of the heap, in use before the library of a GPU is loaded: the memory is
// registered for the GPU while one of them exists, and the GPU copies it by itself then and after
// MPI_Win_free (gpu_reads_host.h). On 2 ranks.
// ranks: 2
// gpu: cuda

#include "gpu_reads_host.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    unsigned char *buffer = host_pages(BYTES), one = (unsigned char)(7 + rank);
    open_window(buffer);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&one, 1, MPI_BYTE, next_rank(), 5, 1, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(buffer[5], 7 + previous_rank());
    start();
    gpu_pin(buffer, BYTES);
    use_window(buffer, 10);
    OK(MPI_Win_free(&win));
    use_alone(buffer, 100);
    open_window(buffer);
    use_window(buffer, 20);
    use_alone(buffer, 130);
    gpu_unpin(buffer);
    OK(MPI_Win_free(&win));
    fill(buffer, 3);
    check_filled(buffer, 3);
    return check_end();
}
