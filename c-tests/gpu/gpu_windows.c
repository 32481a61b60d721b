// Windows where the run-time library of a GPU is loaded: those over memory of the device, of each
// kind, and over managed memory are left to the host MPI, also if one rank alone exposes such
// memory; those over memory of the host, pinned or not, allocated and dynamic ones are not.
// Attaching memory of the device is an error. On 2 and 3 ranks.
// ranks: 2 3
// settings: FOMPI_FALLBACK=error
// gpu: cuda

#include "gpu.h"

static MPI_Win win;

// Makes a window over memory, and uses it if it is made. `is_left`: whether it is left to the MPI
// underneath, which FOMPI_FALLBACK=error forbids.
static void create(void *base, size_t bytes, int is_left)
{
    int value = 40 + rank;
    int code = MPI_Win_create(base, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (is_left && has_gpu()) {
        EXPECT(code, MPI_ERR_UNSUPPORTED_OPERATION);
        return;
    }
    OK(code);
    OK(MPI_Win_fence(0, win));
    if (bytes >= sizeof value)
        OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    if (bytes >= sizeof value)
        CHECK_EQ(*(int *)base, 40 + previous_rank());
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    enum { BYTES = 10000 };
    gpu_start("libcuda.so.1");
    check_start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    char *host = malloc(BYTES), *device = gpu_allocate(DEVICE, BYTES);
    char *managed = gpu_allocate(MANAGED, BYTES), *pinned = gpu_allocate(PINNED, BYTES), *shared;
    char *more[GPU_KINDS] = { NULL };
    for (int kind = REGISTERED; kind < GPU_KINDS; kind++)
        if (gpu_offers(kind))
            more[kind] = gpu_allocate(kind, BYTES);
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &shared));
    for (int round = 0; round < 2; round++) {
        create(host, BYTES, 0);
        create(pinned, BYTES, 0);
        create(shared, BYTES, 0);
        create(device, BYTES, 1);
        create(device + 112, 8, 1);
        create(managed, BYTES, 1);
        create(more[REGISTERED], BYTES, 0);
        for (int kind = POOL; kind < GPU_KINDS; kind++)
            if (more[kind] != NULL)
                create(more[kind], BYTES, 1);
        create(rank == size - 1 ? device : host, BYTES, 1);
        create(device, 0, 0);
        create(NULL, 0, 0);
    }
    OK(MPI_Free_mem(shared));
    window_of(BYTES, 1, &win);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_attach(win, host, BYTES));
    if (has_gpu()) {
        EXPECT(MPI_Win_attach(win, device, BYTES), MPI_ERR_RMA_ATTACH);
        EXPECT(MPI_Win_attach(win, managed + 1, 1), MPI_ERR_RMA_ATTACH);
        for (int kind = POOL; kind < GPU_KINDS; kind++)
            if (more[kind] != NULL)
                EXPECT(MPI_Win_attach(win, more[kind], BYTES), MPI_ERR_RMA_ATTACH);
    }
    OK(MPI_Win_attach(win, pinned, BYTES));
    OK(MPI_Win_detach(win, pinned));
    OK(MPI_Win_detach(win, host));
    OK(MPI_Win_free(&win));
    free(host);
    return check_end();
}
