// The parts of a shared window lie after one another in rank order, and every rank can load and
// store in all of them. MPI-4.1 section 12.2.3.
// ranks: 1 2 3 4 8
// between nodes: shared windows are left to the host MPI

#include "check.h"

static int elements_of(int r) { return r % 3 == 1 ? 0 : 5 + r; }

static void neighbours_touch(MPI_Win win)
{
    char *end = NULL;
    for (int r = 0; r < size; r++) {
        MPI_Aint bytes;
        int disp_unit;
        char *part;
        OK(MPI_Win_shared_query(win, r, &bytes, &disp_unit, &part));
        CHECK_EQ(bytes, elements_of(r) * (MPI_Aint)sizeof(double));
        CHECK_EQ(disp_unit, 8 << (r % 2));
        if (bytes == 0)
            continue;
        CHECK(end == NULL || part == end);
        end = part + bytes;
    }
}

static void stores_reach_everyone(MPI_Win win)
{
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int r = 0; r < size; r++) {
        MPI_Aint bytes;
        int disp_unit;
        double *part;
        OK(MPI_Win_shared_query(win, r, &bytes, &disp_unit, &part));
        for (int i = rank; i < elements_of(r); i += size)
            part[i] = 1000.0 * r + i;
    }
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int r = 0; r < size; r++) {
        MPI_Aint bytes;
        int disp_unit;
        double *part;
        OK(MPI_Win_shared_query(win, r, &bytes, &disp_unit, &part));
        for (int i = 0; i < elements_of(r); i++)
            CHECK(part[i] == 1000.0 * r + i);
    }
    OK(MPI_Win_unlock_all(win));
}

// Put and get work on a shared window as on any other.
static void calls_work_too(double *base, MPI_Win win)
{
    double value = 0.5 + rank, got = 0;
    int target = next_rank();
    OK(MPI_Win_fence(0, win));
    if (elements_of(target) > 4)
        OK(MPI_Put(&value, 1, MPI_DOUBLE, target, 2 >> (target % 2), 1, MPI_DOUBLE, win));
    OK(MPI_Win_fence(0, win));
    if (elements_of(rank) > 0)
        CHECK(base[2] == 0.5 + previous_rank());
    OK(MPI_Win_fence(0, win));
    if (elements_of(target) > 4)
        OK(MPI_Get(&got, 1, MPI_DOUBLE, target, 2 >> (target % 2), 1, MPI_DOUBLE, win));
    OK(MPI_Win_fence(0, win));
    if (elements_of(target) > 4)
        CHECK(got == value);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    double *base;
    check_start(&argc, &argv);
    OK(MPI_Win_allocate_shared(elements_of(rank) * (MPI_Aint)sizeof(double), 8 << (rank % 2),
                               MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    neighbours_touch(win);
    stores_reach_everyone(win);
    calls_work_too(base, win);
    OK(MPI_Win_free(&win));
    return check_end();
}
