// Where the system refuses process_vm, windows over memory of the program still work, also
// dynamic ones: on all ranks, or on one. MPI-4.1 sections 12.2.1 and 12.2.4.
// ranks: 2 3
// settings: FOMPI_ADOPT=never FOMPI_FALLBACK=error

#define _GNU_SOURCE
#include "check.h"
#include "refused_calls.h"

enum { LONGS = 1000 };

// All ranks add to all longs of all ranks, and put one. `at`: where the memory of each rank begins.
static void use(MPI_Win win, long *memory, const MPI_Aint *at)
{
    static long ones[LONGS], seen[LONGS];
    int next = (rank + 1) % size;
    for (int n = 0; n < LONGS; n++)
        ones[n] = 1;
    OK(MPI_Win_fence(0, win));
    for (int target = 0; target < size; target++)
        OK(MPI_Accumulate(ones, LONGS, MPI_LONG, target, at[target], LONGS, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    for (int n = 0; n < LONGS; n++)
        CHECK_EQ(memory[n], size);
    OK(MPI_Win_fence(0, win));
    long value = 1000 + rank;
    OK(MPI_Put(&value, 1, MPI_LONG, next, at[next] + 80, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(memory[10], 1000 + (rank + size - 1) % size);
    OK(MPI_Get(seen, LONGS, MPI_LONG, next, at[next], LONGS, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    for (int n = 0; n < LONGS; n++)
        CHECK_EQ(seen[n], n == 10 ? value : size);
    OK(MPI_Win_free(&win));
}

static void created(MPI_Comm comm)
{
    static const MPI_Aint zeros[64];
    long *memory = calloc(LONGS, sizeof *memory);
    MPI_Win win;
    CHECK(size <= 64);
    OK(MPI_Win_create(memory, LONGS * 8, 1, MPI_INFO_NULL, comm, &win));
    use(win, memory, zeros);
    free(memory);
}

static void dynamic(void)
{
    long *memory = calloc(LONGS, sizeof *memory);
    MPI_Aint at[64], own;
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, memory, LONGS * 8));
    OK(MPI_Get_address(memory, &own));
    OK(MPI_Allgather(&own, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    use(win, memory, at);
    free(memory);
}

int main(int argc, char **argv)
{
    MPI_Comm later;
    check_start(&argc, &argv);
    if (rank == size - 1)
        CHECK(refuse_calls(SYS_process_vm_readv, SYS_process_vm_writev));
    created(MPI_COMM_WORLD);
    dynamic();
    created(MPI_COMM_WORLD);
    CHECK(refuse_calls(SYS_process_vm_readv, SYS_process_vm_writev));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &later));
    created(later);
    OK(MPI_Comm_free(&later));
    return check_end();
}
