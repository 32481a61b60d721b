// MPI_Win_shared_query on created and allocated windows: for each rank it answers its memory as
// this process can load and store it, or a size of 0 where it cannot. The own memory can always be
// reached. MPI-4.1 section 12.2.3.
// ranks: 1 2 3 4
// settings: FOMPI_ADOPT=never

#include "created.h"
#include "nodes.h"

enum { LONGS = 40, RANKS_MAX = 8 };

// Whether the library must have mapped the memory, beyond what the standard asks for.
enum promise { MAY_BE_FAR, IS_MAPPED };

// Whether the memory of a rank is on this node.
static int is_near(int target)
{
    const int k = ranks_per_node();
    return k <= 0 || rank / k == target / k;
}

static long *answer_for(MPI_Win win, int target, MPI_Aint *bytes, int *unit)
{
    long *base = (long *)-1;
    *bytes = *unit = -1;
    OK(MPI_Win_shared_query(win, target, bytes, unit, &base));
    CHECK(*bytes >= 0);
    return base;
}

// Each rank stores through the pointer that it got, and the owner sees it; and the other way round.
static void load_and_store(MPI_Win win, const MPI_Aint *sizes, long *mine)
{
    MPI_Aint bytes;
    int unit, reached[RANKS_MAX], reached_by[RANKS_MAX];
    for (int target = 0; target < size; target++) {
        long *base = answer_for(win, target, &bytes, &unit);
        reached[target] = bytes > 0;
        if (bytes > 0)
            base[1 + rank] = 100 * target + rank;
    }
    OK(MPI_Alltoall(reached, 1, MPI_INT, reached_by, 1, MPI_INT, MPI_COMM_WORLD));
    for (int origin = 0; sizes[rank] > 0 && origin < size; origin++)
        if (reached_by[origin])
            CHECK_EQ(mine[1 + origin], 100 * rank + origin);
    if (sizes[rank] > 0)
        mine[0] = 7000 + rank;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int target = 0; target < size; target++) {
        long *base = answer_for(win, target, &bytes, &unit);
        if (bytes > 0)
            CHECK_EQ(base[0], 7000 + target);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// MPI_PROC_NULL stands for the first rank that has memory.
static void first_with_memory(MPI_Win win, const MPI_Aint *sizes, enum promise promise)
{
    MPI_Aint bytes, expected;
    int unit, expected_unit, first = 0;
    while (first < size - 1 && sizes[first] == 0)
        first++;
    const long *want = answer_for(win, first, &expected, &expected_unit);
    const long *base = answer_for(win, MPI_PROC_NULL, &bytes, &unit);
    if (bytes > 0 || (promise == IS_MAPPED && library_is_here())) {
        CHECK_EQ(bytes, expected);
        CHECK(bytes == 0 || (base == want && unit == expected_unit));
    }
}

static void check_window(MPI_Win win, long *mine, MPI_Aint bytes, enum promise promise)
{
    MPI_Aint sizes[RANKS_MAX], answered;
    int units[RANKS_MAX], *unit, answered_unit, flag;
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag));
    OK(MPI_Allgather(&bytes, 1, MPI_AINT, sizes, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Allgather(unit, 1, MPI_INT, units, 1, MPI_INT, MPI_COMM_WORLD));
    for (int target = 0; target < size; target++) {
        long *base = answer_for(win, target, &answered, &answered_unit);
        if (answered > 0) {
            CHECK_EQ(answered, sizes[target]);
            CHECK_EQ(answered_unit, units[target]);
        }
        if (target == rank || (promise == IS_MAPPED && library_is_here() && is_near(target)))
            CHECK_EQ(answered, sizes[target]);
        if (library_is_here() && !is_near(target))
            CHECK_EQ(answered, 0);
        CHECK(target != rank || bytes == 0 || base == mine);
    }
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    load_and_store(win, sizes, mine);
    OK(MPI_Win_unlock_all(win));
    first_with_memory(win, sizes, promise);
}

static void created(long *memory, MPI_Aint bytes, enum promise promise)
{
    MPI_Win win = window_over(bytes > 0 ? memory : NULL, bytes, 8 + 8 * rank);
    check_window(win, memory, bytes, promise);
    OK(MPI_Win_free(&win));
}

static void allocated(MPI_Aint bytes)
{
    MPI_Win win;
    long *memory;
    OK(MPI_Win_allocate(bytes, 8 + 8 * rank, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    check_window(win, memory, bytes, IS_MAPPED);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    MPI_Win dynamic;
    MPI_Aint bytes;
    long *base;
    int unit;
    check_start(&argc, &argv);
    const MPI_Aint all = LONGS * sizeof(long), some = all - 8 * rank;
    long *heap = heap_memory((size_t)all), *from_mpi = mpi_memory((size_t)all);
    allocated(some);
    allocated(rank == 0 ? 0 : all);
    created(from_mpi, some, IS_MAPPED);
    created(from_mpi, rank == 0 ? 0 : some, IS_MAPPED);
    created(heap, some, MAY_BE_FAR);
    created(rank % 2 == 0 ? heap : from_mpi, some, MAY_BE_FAR);
    created(heap, 0, MAY_BE_FAR);
    // What is attached to a dynamic window has no base that could be answered.
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    OK(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
    EXPECT(MPI_Win_shared_query(dynamic, rank, &bytes, &unit, &base), MPI_ERR_RMA_FLAVOR);
    OK(MPI_Win_free(&dynamic));
    OK(MPI_Free_mem(from_mpi));
    return check_end();
}
