// A profiling library that wraps every function of MPI that libfompi exports, and some that libfompi
// needs for itself: counts the calls that pass through it, hands each to its PMPI twin, and tells the
// program the counts. MPI-4.1 section 15.2.

#include <mpi.h>
#include <string.h>

#include "../../include/fompi_mpi.h"

#undef MPI_Aint_add
#undef MPI_Aint_diff
#undef MPI_Win_c2f
#undef MPI_Win_f2c
#undef PMPI_Aint_add
#undef PMPI_Aint_diff
#undef PMPI_Win_c2f
#undef PMPI_Win_f2c

#define WRAP(type, name, parameters, arguments) \
    static int calls_of_##name; \
    type MPI_##name parameters \
    { \
        calls_of_##name++; \
        return PMPI_##name arguments; \
    }
#include "generated/wrap.h"
#undef WRAP

static const struct { const char *name; int *calls; } wrapped[] = {
#define WRAP(type, name, parameters, arguments) {#name, &calls_of_##name},
#include "generated/wrap.h"
#undef WRAP
};

enum { WRAPPED = sizeof wrapped / sizeof *wrapped };

// The function number `index`, and how often it was called; NULL: there are no more.
const char *profiler_function(int index, int *calls)
{
    if (index < 0 || index >= WRAPPED)
        return NULL;
    *calls = *wrapped[index].calls;
    return wrapped[index].name;
}

int profiler_count(const char *call)
{
    for (int i = 0; i < WRAPPED; i++)
        if (strcmp(call, wrapped[i].name) == 0)
            return *wrapped[i].calls;
    return -1;
}

// Functions of the host MPI.
static int others;

int profiler_others(void)
{
    return others;
}

#define OTHER(name, parameters, arguments) \
    int MPI_##name parameters \
    { \
        others++; \
        return PMPI_##name arguments; \
    }

OTHER(Barrier, (MPI_Comm comm), (comm))
OTHER(Bcast, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
      (buffer, count, type, root, comm))
OTHER(Allreduce, (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm), (from, to, count, type, op, comm))
OTHER(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
      (source, tag, comm, flag, status))
OTHER(Comm_dup, (MPI_Comm comm, MPI_Comm *copy), (comm, copy))
OTHER(Comm_free, (MPI_Comm *comm), (comm))
OTHER(Comm_group, (MPI_Comm comm, MPI_Group *group), (comm, group))
OTHER(Comm_size, (MPI_Comm comm, int *size), (comm, size))
OTHER(Comm_rank, (MPI_Comm comm, int *rank), (comm, rank))
OTHER(Comm_get_attr, (MPI_Comm comm, int keyval, void *value, int *flag),
      (comm, keyval, value, flag))
OTHER(Comm_set_attr, (MPI_Comm comm, int keyval, void *value), (comm, keyval, value))
OTHER(Type_get_envelope, (MPI_Datatype type, int *integers, int *addresses, int *types,
                          int *combiner), (type, integers, addresses, types, combiner))
OTHER(Type_size, (MPI_Datatype type, int *size), (type, size))
OTHER(Group_translate_ranks, (MPI_Group from, int count, const int ranks[], MPI_Group to,
                              int translated[]), (from, count, ranks, to, translated))
OTHER(Info_dup, (MPI_Info info, MPI_Info *copy), (info, copy))
