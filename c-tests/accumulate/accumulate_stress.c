// All ranks change the same elements of allocated, shared and dynamic windows at once, from 1 to 16
// bytes wide, one or thousands a call, by all the accumulate calls; no update is lost and none seen
// half done. MPI-4.1 section 12.7.1. For created windows see created_accumulate_stress.
// ranks: 1 2 4 8
// plain ranks: 1 2

#include "nodes.h"
#include "stress.h"

static void in_allocated(const struct kind *kind, int shared)
{
    const struct place place = {.units = kind->bytes};
    const MPI_Aint bytes = (MPI_Aint)COUNT * kind->bytes;
    MPI_Win win;
    char *memory;
    if (shared)
        OK(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    else
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    stress_in(win, &place, kind, memory, LOCK_ALL);
    stress_in(win, &place, kind, memory, LOCK_EACH);
    OK(MPI_Win_free(&win));
}

static void in_dynamic(const struct kind *kind, char *memory)
{
    struct place place = {.units = kind->bytes};
    MPI_Aint start;
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, memory, (MPI_Aint)COUNT * kind->bytes));
    OK(MPI_Get_address(memory, &start));
    OK(MPI_Allgather(&start, 1, MPI_AINT, place.starts, 1, MPI_AINT, MPI_COMM_WORLD));
    stress_in(win, &place, kind, memory, LOCK_ALL);
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    stress_start(&argc, &argv);
    char *heap = heap_memory(STRESS_BYTES), *from_mpi = mpi_memory(STRESS_BYTES);
    for (int kind = 0; kind < KINDS; kind++) {
        in_allocated(&kinds[kind], kind % 2 && ranks_per_node() == 0);
        in_dynamic(&kinds[kind], (kind + rank) % 2 == 0 ? heap : from_mpi);
    }
    OK(MPI_Free_mem(from_mpi));
    return check_end();
}
