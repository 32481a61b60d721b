// Transfers that leave the target's part of a created window are refused, however close its other
// memory lies, and whichever size the other ranks have. MPI-4.1 sections 12.2.1 and 12.6.2.
// ranks: 1 2 4

#include "created.h"

enum { LONGS = 64 };

static MPI_Win win;

// The window of a rank in longs, in the middle of LONGS; one of them has none.
static int longs_of(int target) { return target == 2 ? 0 : 8 + 4 * target; }

#define REFUSED(call) EXPECT(call, MPI_ERR_RMA_RANGE, MPI_ERR_DISP)

static void outside(int target, MPI_Aint disp, int count)
{
    static long values[4 * LONGS], got[4 * LONGS];
    const MPI_Datatype type = MPI_LONG;
    MPI_Request request;
    for (int i = 0; i < 4 * LONGS; i++)
        got[i] = 5;
    REFUSED(MPI_Put(values, count, type, target, disp, count, type, win));
    REFUSED(MPI_Get(got, count, type, target, disp, count, type, win));
    REFUSED(MPI_Accumulate(values, count, type, target, disp, count, type, MPI_SUM, win));
    REFUSED(MPI_Get_accumulate(values, count, type, got, count, type, target, disp, count, type,
                               MPI_SUM, win));
    REFUSED(MPI_Rput(values, count, type, target, disp, count, type, win, &request));
    REFUSED(MPI_Rget(got, count, type, target, disp, count, type, win, &request));
    for (int i = 0; i < 4 * LONGS; i++)
        CHECK_EQ(got[i], 5);
    if (count == 1) {
        REFUSED(MPI_Fetch_and_op(values, got, type, target, disp, MPI_SUM, win));
        REFUSED(MPI_Compare_and_swap(values, values, got, type, target, disp, win));
    }
}

static void shapes(int target)
{
    MPI_Datatype wide, backwards;
    long values[4] = {0};
    const int longs = longs_of(target);
    OK(MPI_Type_vector(2, 1, longs, MPI_LONG, &wide));
    OK(MPI_Type_commit(&wide));
    OK(MPI_Type_vector(2, 1, -2, MPI_LONG, &backwards));
    OK(MPI_Type_commit(&backwards));
    REFUSED(MPI_Put(values, 2, MPI_LONG, target, 0, 1, wide, win));
    REFUSED(MPI_Put(values, 2, MPI_LONG, target, 1, 1, backwards, win));
    OK(MPI_Type_free(&wide));
    OK(MPI_Type_free(&backwards));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    long *memory = heap_memory(LONGS * sizeof(long));
    for (int i = 0; i < LONGS; i++)
        memory[i] = 50 + i;
    win = returning_window_over(memory + 16, longs_of(rank) * (MPI_Aint)sizeof(long),
                                sizeof(long));
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; target < size; target++) {
        const int longs = longs_of(target);
        outside(target, longs, 1);
        outside(target, longs - 1, 2);
        outside(target, 0, longs + 1);
        outside(target, -1, 1);
        outside(target, (MPI_Aint)1 << 60, 1);
        outside(target, -((MPI_Aint)1 << 60), 1);
        if (longs > 0)
            shapes(target);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(memory[i], 50 + i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return check_end();
}
