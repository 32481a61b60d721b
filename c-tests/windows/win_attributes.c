// The predefined attributes of a window: base, size, displacement unit, flavour and memory model.
// MPI-4.1 section 12.2.6.
// ranks: 1 2 4
// between nodes: shared windows are left to the host MPI

#include "check.h"

static void *attribute(MPI_Win win, int keyval)
{
    void *value = NULL;
    int flag = 0;
    OK(MPI_Win_get_attr(win, keyval, &value, &flag));
    CHECK(flag);
    return value;
}

static void check_attributes(MPI_Win win, void *base, MPI_Aint bytes, int disp_unit, int flavor)
{
    CHECK(attribute(win, MPI_WIN_BASE) == base);
    CHECK_EQ(*(MPI_Aint *)attribute(win, MPI_WIN_SIZE), bytes);
    CHECK_EQ(*(int *)attribute(win, MPI_WIN_DISP_UNIT), disp_unit);
    CHECK_EQ(*(int *)attribute(win, MPI_WIN_CREATE_FLAVOR), flavor);
    int model = *(int *)attribute(win, MPI_WIN_MODEL);
    CHECK(model == MPI_WIN_UNIFIED || model == MPI_WIN_SEPARATE);
}

int main(int argc, char **argv)
{
    MPI_Win allocated, shared;
    void *base, *shared_base;
    check_start(&argc, &argv);
    OK(MPI_Win_allocate(96 + 16 * rank, 1 + rank, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                        &allocated));
    OK(MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &shared_base, &shared));
    check_attributes(allocated, base, 96 + 16 * rank, 1 + rank, MPI_WIN_FLAVOR_ALLOCATE);
    check_attributes(shared, shared_base, 64, 8, MPI_WIN_FLAVOR_SHARED);
    // The answers of one window are not touched by those of another.
    MPI_Aint *bytes = attribute(allocated, MPI_WIN_SIZE);
    CHECK_EQ(*(MPI_Aint *)attribute(shared, MPI_WIN_SIZE), 64);
    CHECK_EQ(*bytes, 96 + 16 * rank);
    OK(MPI_Win_free(&shared));
    CHECK_EQ(*(int *)attribute(allocated, MPI_WIN_DISP_UNIT), 1 + rank);
    OK(MPI_Win_free(&allocated));
    return check_end();
}
