// Windows over memory that is registered for a GPU before the window is made, while it exists, or
// that CUDA has allocated, during the GPU's own copies (gpu_reads_host.h). The library of the GPU
// is loaded first. On 2 ranks.
// ranks: 2
// gpu: cuda

#include "gpu_reads_host.h"

int main(int argc, char **argv)
{
    start();
    check_start(&argc, &argv);
    unsigned char *pinned = gpu_allocate(PINNED, BYTES), *buffer = host_pages(BYTES);
    for (int round = 0; round < 3; round++) {
        open_window(pinned);
        use_window(pinned, 10 * round);
        OK(MPI_Win_free(&win));
        use_alone(pinned, 200 + round);

        gpu_pin(buffer, BYTES);
        open_window(buffer);
        use_window(buffer, 20 * round);
        OK(MPI_Win_free(&win));
        use_alone(buffer, 210 + round);
        gpu_unpin(buffer);

        open_window(buffer);
        gpu_pin(buffer, BYTES);
        use_window(buffer, 30 * round);
        OK(MPI_Win_free(&win));
        use_alone(buffer, 220 + round);
        gpu_unpin(buffer);
    }
    return check_end();
}
