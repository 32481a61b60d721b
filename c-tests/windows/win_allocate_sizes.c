// Windows whose sizes and displacement units differ per rank, zero sizes among them, reach the
// right bytes of every target. MPI-4.1 section 12.2.2.
// ranks: 1 2 4 8

#include "check.h"

// Rank r exposes elements[r % 5] integers and counts its displacements in units[r % 4] bytes.
static const int elements[] = {6, 0, 1, 1000, 4096};
static const int units[] = {4, 1, 2, 8};

static int elements_of(int r) { return elements[r % 5]; }
static int unit_of(int r) { return units[r % 4]; }

// With a unit of 8 bytes only every second integer has a displacement.
static int index_in(int target, int origin) { return origin * (unit_of(target) == 8 ? 2 : 1); }

static MPI_Aint disp_in(int target, int index) { return (MPI_Aint)index * 4 / unit_of(target); }

static void every_rank_writes_its_element(const int *base, MPI_Win win)
{
    int values[64];
    OK(MPI_Win_fence(0, win));
    for (int target = 0; target < size; target++) {
        int index = index_in(target, rank);
        values[target] = 1 + 100 * rank + target;
        if (index < elements_of(target))
            OK(MPI_Put(&values[target], 1, MPI_INT, target, disp_in(target, index), 1, MPI_INT,
                       win));
    }
    OK(MPI_Win_fence(0, win));
    for (int origin = 0; origin < size; origin++) {
        int index = index_in(rank, origin);
        if (index < elements_of(rank))
            CHECK_EQ(base[index], 1 + 100 * origin + rank);
    }
}

// The last even integer of the window, where both ends of the address arithmetic show.
static void every_rank_reads_the_last_element(int *base, MPI_Win win)
{
    int got[64];
    int last = (elements_of(rank) - 1) & ~1;
    if (elements_of(rank) > 0)
        base[last] = -7 - rank;
    OK(MPI_Win_fence(0, win));
    for (int target = 0; target < size; target++)
        if (elements_of(target) > 0)
            OK(MPI_Get(&got[target], 1, MPI_INT, target,
                       disp_in(target, (elements_of(target) - 1) & ~1), 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    for (int target = 0; target < size; target++)
        if (elements_of(target) > 0)
            CHECK_EQ(got[target], -7 - target);
}

static void nobody_exposes_anything(void)
{
    MPI_Win win;
    void *base;
    OK(MPI_Win_allocate(0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    int *base;
    check_start(&argc, &argv);
    OK(MPI_Win_allocate((MPI_Aint)elements_of(rank) * 4, unit_of(rank), MPI_INFO_NULL,
                        MPI_COMM_WORLD, &base, &win));
    if (elements_of(rank) > 0)
        memset(base, 0, (size_t)elements_of(rank) * 4);
    every_rank_writes_its_element(base, win);
    every_rank_reads_the_last_element(base, win);
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
    nobody_exposes_anything();
    return check_end();
}
