// Memory from MPI_Alloc_mem can be used, as a buffer and as a window, and given back.
// MPI-4.1 sections 10.2 and 12.2.1.
// ranks: 2 4

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Info info;
    long *memory, *none, value;
    check_start(&argc, &argv);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "64"));
    OK(MPI_Alloc_mem(1 << 20, info, &memory));
    OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &none));
    memset(memory, 0, 1 << 20);
    OK(MPI_Win_create(memory, 1 << 20, sizeof(long), info, MPI_COMM_WORLD, &win));
    OK(MPI_Info_free(&info));
    value = 11 + rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 1000, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(memory[1000], 11 + previous_rank());
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(memory));
    if (none != NULL)
        OK(MPI_Free_mem(none));
    return check_end();
}
