// A window over memory of a GPU that the host MPI makes: it can be made and freed, and another one
// of libfompi exists at the same time. No rank accesses its memory, which an MPI without support of
// GPUs cannot reach. On 2 ranks.
// ranks: 2
// gpu: cuda
// between nodes: it is about such a window

#include "gpu.h"

int main(int argc, char **argv)
{
    MPI_Win win, own;
    gpu_start("libcuda.so.1");
    check_start(&argc, &argv);
    int *device = gpu_allocate(DEVICE, 4096), value;
    OK(MPI_Win_create(device, 4096, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    int *base = window_of(4096, 4, &own);
    value = 123 + rank;
    gpu_write(DEVICE, device + 7, &value, sizeof value);
    OK(MPI_Win_fence(0, own));
    OK(MPI_Put(device + 7, 1, MPI_INT, next_rank(), 1, 1, MPI_INT, own));
    OK(MPI_Win_fence(0, own));
    CHECK_EQ(base[1], 123 + previous_rank());
    OK(MPI_Win_free(&own));
    OK(MPI_Win_free(&win));
    return check_end();
}
