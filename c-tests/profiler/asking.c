// A tool that makes one-sided calls itself. It wraps some functions only: in MPI_Put it asks for
// attributes, group and name of the window and reads what it is about to change; what it has seen it
// counts at rank 0, in a window of its own. MPI-4.1 section 15.2.

#include <mpi.h>
#include <string.h>

static MPI_Win own = MPI_WIN_NULL;
static long seen_bytes, old_values, *base;

// Bytes that all ranks have put, as far as rank 0 knows; for the program.
long asking_total(void)
{
    long total = 0, nothing = 0;
    PMPI_Fetch_and_op(&nothing, &total, MPI_LONG, 0, 0, MPI_NO_OP, own);
    PMPI_Win_flush(0, own);
    return total;
}

// What was in the places of this rank's puts before, summed up; and the bytes put.
long asking_old(void) { return old_values; }
long asking_bytes(void) { return seen_bytes; }

int MPI_Win_create(void *memory, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win *win)
{
    if (own == MPI_WIN_NULL) {
        PMPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &own);
        PMPI_Win_lock_all(0, own);
        *base = 0;
        PMPI_Win_sync(own);
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    int code = PMPI_Win_create(memory, size, disp_unit, info, comm, win);
    if (code == MPI_SUCCESS)
        PMPI_Win_set_name(*win, "asked");
    return code;
}

int MPI_Put(const void *origin, int origin_count, MPI_Datatype origin_type, int target,
            MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win)
{
    int *unit, *flavor, found, size, length;
    long before = 0, bytes;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Group group;
    PMPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &found);
    if (!found || *unit != sizeof(long))
        return MPI_ERR_DISP;
    PMPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &found);
    if (!found || *flavor != MPI_WIN_FLAVOR_CREATE)
        return MPI_ERR_WIN;
    PMPI_Win_get_name(win, name, &length);
    if (strcmp(name, "asked") != 0)
        return MPI_ERR_NAME;
    PMPI_Win_get_group(win, &group);
    PMPI_Group_size(group, &size);
    PMPI_Group_free(&group);
    if (target >= size)
        return MPI_ERR_RANK;
    PMPI_Get(&before, 1, MPI_LONG, target, disp, 1, MPI_LONG, win);
    PMPI_Win_flush(target, win);
    old_values += before;
    PMPI_Type_size(origin_type, &size);
    bytes = (long)size * origin_count;
    seen_bytes += bytes;
    PMPI_Accumulate(&bytes, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, own);
    PMPI_Win_flush(0, own);
    return PMPI_Put(origin, origin_count, origin_type, target, disp, target_count, target_type,
                    win);
}

int MPI_Finalize(void)
{
    if (own != MPI_WIN_NULL) {
        PMPI_Win_unlock_all(own);
        PMPI_Win_free(&own);
    }
    return PMPI_Finalize();
}
