// Windows that the node can never have the memory for fail with MPI_ERR_NO_MEM on every rank, at creation, and
// a small one works afterwards. So does one where a single rank asks for something impossible.

#include "robust.h"

// Memory and swap of the node.
static int64_t ram;

static int64_t ram_bytes(void)
{
    char line[256];
    int64_t kib = 0;
    FILE *info = fopen("/proc/meminfo", "r");
    while (info != NULL && fgets(line, sizeof line, info) != NULL)
        if (strncmp(line, "MemTotal:", 9) == 0 || strncmp(line, "SwapTotal:", 10) == 0)
            kib += atoll(strchr(line, ':') + 1);
    if (info != NULL)
        fclose(info);
    return kib * 1024;
}

static void small(void)
{
    MPI_Win win;
    int64_t *base = window_of(4, &win), value = rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, win));
    OK(MPI_Win_fence(0, win));
    CHECK(base[0] == (rank + size - 1) % size);
    OK(MPI_Win_free(&win));
}

// All ranks ask, and all get the same refusal.
static void refused(MPI_Aint bytes, int shared)
{
    MPI_Win win;
    void *base;
    int code = shared
        ? MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win)
        : MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    EXPECT(code, MPI_ERR_NO_MEM);
    small();
}

// One rank alone asks for too much, or for nonsense.
static void one_rank(MPI_Aint bytes, int disp_unit, int class)
{
    MPI_Win win;
    void *base;
    int odd = rank == size - 1;
    EXPECT(MPI_Win_allocate(odd ? bytes : 64, odd ? disp_unit : 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                            &base, &win), class);
    small();
}

int main(int argc, char **argv)
{
    start(40, &argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    ram = ram_bytes();
    small();
    refused((MPI_Aint)1 << 40, 0);
    refused((MPI_Aint)1 << 40, 1);
    refused((MPI_Aint)1 << 61, 0);
    refused((MPI_Aint)1 << 62, 1);
    refused((MPI_Aint)(2 * ram), 0);
    if (size > 1)
        refused((MPI_Aint)(ram / 10 * 6), 0);
    one_rank((MPI_Aint)1 << 40, 1, MPI_ERR_NO_MEM);
    one_rank(-1, 1, MPI_ERR_SIZE);
    one_rank(64, 0, MPI_ERR_DISP);
    one_rank(64, -4, MPI_ERR_DISP);
    return MPI_Finalize();
}
