// The run-time library of a GPU is loaded while windows exist, inside of an epoch and after calls
// on the fast path: the next call may have a buffer in memory of the GPU. Other libraries
// that are loaded change nothing. On 2 ranks.
// ranks: 2
// gpu: cuda

#include "gpu.h"

int main(int argc, char **argv)
{
    MPI_Win windows[3];
    int *bases[3], one = 1, got = 0;
    check_start(&argc, &argv);
    for (int i = 0; i < 3; i++) {
        bases[i] = window_of(16 * sizeof(int), sizeof(int), &windows[i]);
        OK(MPI_Win_lock_all(0, windows[i]));
    }
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 3; i++) {
            OK(MPI_Put(&one, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, windows[i]));
            OK(MPI_Win_flush(next_rank(), windows[i]));
        }
        CHECK(dlopen("libm.so.6", RTLD_NOW) != NULL);
        CHECK(dlopen("no such library", RTLD_NOW) == NULL && dlerror() != NULL);
    }
    gpu_start("libcuda.so.1");
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 3; i++) {
            const int kind = round == 1 ? MANAGED : DEVICE;
            int *device = gpu_allocate(kind, 64), value = 100 * round + 10 * i + rank, back;
            gpu_write(kind, device + 2, &value, sizeof value);
            if (i == 0)
                OK(MPI_Fetch_and_op(device + 2, device, MPI_INT, next_rank(), 3, MPI_REPLACE,
                                    windows[i]));
            if (i == 1)
                OK(MPI_Put(device + 2, 1, MPI_INT, next_rank(), 3, 1, MPI_INT, windows[i]));
            if (i == 2)
                OK(MPI_Accumulate(device + 2, 1, MPI_INT, next_rank(), 3, 1, MPI_INT, MPI_REPLACE,
                                  windows[i]));
            OK(MPI_Win_flush(next_rank(), windows[i]));
            OK(MPI_Get(device, 1, MPI_INT, next_rank(), 3, 1, MPI_INT, windows[i]));
            OK(MPI_Win_flush(next_rank(), windows[i]));
            gpu_read(kind, &back, device, sizeof back);
            CHECK_EQ(back, value);
            MPI_Barrier(MPI_COMM_WORLD);
            CHECK_EQ(bases[i][3], 100 * round + 10 * i + previous_rank());
            MPI_Barrier(MPI_COMM_WORLD);
            OK(MPI_Get(&got, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, windows[i]));
            OK(MPI_Win_flush(next_rank(), windows[i]));
            CHECK_EQ(got, 1);
        }
    for (int i = 0; i < 3; i++) {
        OK(MPI_Win_unlock_all(windows[i]));
        OK(MPI_Win_free(&windows[i]));
    }
    return check_end();
}
