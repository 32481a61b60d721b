// The predefined attributes of created windows, several at once, also of those without
// memory. MPI-4.1 sections 12.2.1 and 12.2.6.
// ranks: 1 2 4

#include "created.h"

enum { WINDOWS = 5 };

static void *attribute(MPI_Win win, int keyval)
{
    void *value = NULL;
    int flag = 0;
    OK(MPI_Win_get_attr(win, keyval, &value, &flag));
    CHECK(flag);
    return value;
}

static void check_attributes(MPI_Win win, void *base, MPI_Aint bytes, int disp_unit)
{
    // Without memory the base means nothing; some MPIs answer a null pointer.
    CHECK(attribute(win, MPI_WIN_BASE) == base || bytes == 0);
    CHECK_EQ(*(MPI_Aint *)attribute(win, MPI_WIN_SIZE), bytes);
    CHECK_EQ(*(int *)attribute(win, MPI_WIN_DISP_UNIT), disp_unit);
    CHECK_EQ(*(int *)attribute(win, MPI_WIN_CREATE_FLAVOR), MPI_WIN_FLAVOR_CREATE);
    int model = *(int *)attribute(win, MPI_WIN_MODEL);
    CHECK(model == MPI_WIN_UNIFIED || model == MPI_WIN_SEPARATE);
}

int main(int argc, char **argv)
{
    MPI_Win windows[WINDOWS];
    check_start(&argc, &argv);
    char *heap = heap_memory(4096), *more = heap_memory(4096);
    char *from_mpi = mpi_memory(4096);
    void *const bases[WINDOWS] = {heap, from_mpi, more + 64 * rank, NULL, heap};
    const MPI_Aint bytes[WINDOWS] = {4096, 1000 + 16 * rank, 1, 0, rank == 0 ? 0 : 17};
    const int units[WINDOWS] = {1, 8 + rank, 3, 1 << 20, 4096};
    for (int i = 0; i < WINDOWS; i++)
        windows[i] = window_over(bases[i], bytes[i], units[i]);
    for (int i = 0; i < WINDOWS; i++)
        check_attributes(windows[i], bases[i], bytes[i], units[i]);
    // Each of them answers for itself, whichever are gone.
    for (int i = 0; i < WINDOWS; i += 2)
        OK(MPI_Win_free(&windows[i]));
    for (int i = 1; i < WINDOWS; i += 2) {
        check_attributes(windows[i], bases[i], bytes[i], units[i]);
        OK(MPI_Win_free(&windows[i]));
    }
    OK(MPI_Free_mem(from_mpi));
    return check_end();
}
