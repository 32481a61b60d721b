// A profiling library: counts the one-sided calls that pass through it, hands each to its PMPI twin,
// and tells the program the counts through profiler_count. MPI-4.1 section 15.2.

#include <mpi.h>
#include <string.h>

static int puts, gets, allocates, frees, fences, locks, unlocks;

int profiler_count(const char *call)
{
    const struct { const char *name; int count; } table[] = {
        {"Put", puts}, {"Get", gets}, {"Win_allocate", allocates}, {"Win_free", frees},
        {"Win_fence", fences}, {"Win_lock", locks}, {"Win_unlock", unlocks},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(call, table[i].name) == 0)
            return table[i].count;
    return -1;
}

int MPI_Put(const void *origin, int origin_count, MPI_Datatype origin_type, int target,
            MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win)
{
    puts++;
    return PMPI_Put(origin, origin_count, origin_type, target, disp, target_count, target_type,
                    win);
}

int MPI_Get(void *origin, int origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
            int target_count, MPI_Datatype target_type, MPI_Win win)
{
    gets++;
    return PMPI_Get(origin, origin_count, origin_type, target, disp, target_count, target_type,
                    win);
}

int MPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *base,
                     MPI_Win *win)
{
    allocates++;
    return PMPI_Win_allocate(size, disp_unit, info, comm, base, win);
}

int MPI_Win_free(MPI_Win *win)
{
    frees++;
    return PMPI_Win_free(win);
}

int MPI_Win_fence(int assert, MPI_Win win)
{
    fences++;
    return PMPI_Win_fence(assert, win);
}

int MPI_Win_lock(int type, int target, int assert, MPI_Win win)
{
    locks++;
    return PMPI_Win_lock(type, target, assert, win);
}

int MPI_Win_unlock(int target, MPI_Win win)
{
    unlocks++;
    return PMPI_Win_unlock(target, win);
}
