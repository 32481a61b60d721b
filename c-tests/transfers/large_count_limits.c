// Counts beyond 2^31 and 2^32 that need no memory, and counts that are wrong: elements of no size or
// of no extent in any number, negative counts, sizes that overflow whatever computes them.
// MPI-4.1 sections 12.3, 12.6.2 and 19.1.6.
// ranks: 1 2 4

#include "check.h"

#if MPI_VERSION >= 4

static const MPI_Count huge = ((MPI_Count)1 << 33) + 5, most = INT64_MAX;

static void nothing_moves(MPI_Win win, const long *base)
{
    MPI_Datatype nothing;
    MPI_Request request;
    long value = 9, got = 8;
    OK(MPI_Type_contiguous(0, MPI_LONG, &nothing));
    OK(MPI_Type_commit(&nothing));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put_c(&value, huge, nothing, next_rank(), 0, huge, nothing, win));
    OK(MPI_Get_c(&got, huge, nothing, next_rank(), 0, 3, nothing, win));
    OK(MPI_Accumulate_c(&value, huge, nothing, next_rank(), 0, 0, MPI_LONG, MPI_SUM, win));
    OK(MPI_Get_accumulate_c(&value, huge, nothing, &got, huge, nothing, next_rank(), 0, huge,
                            nothing, MPI_SUM, win));
    OK(MPI_Rput_c(&value, huge, nothing, next_rank(), 0, huge, nothing, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Rget_c(&got, huge, nothing, next_rank(), 0, huge, nothing, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(got, 8);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(base[0], 3);
    OK(MPI_Type_free(&nothing));
}

// A dense type of more than 2^32 elements without size, and one long after them.
static void large_type(MPI_Win win, const long *base)
{
    const MPI_Count lengths[2] = {huge, 1}, places[2] = {0, 8};
    const long value = 40 + rank;
    MPI_Datatype nothing, both, types[2];
    OK(MPI_Type_contiguous(0, MPI_LONG, &nothing));
    types[0] = nothing;
    types[1] = MPI_LONG;
    OK(MPI_Type_create_struct_c(2, lengths, places, types, &both));
    OK(MPI_Type_commit(&both));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put_c(&value, 1, MPI_LONG, next_rank(), 0, 1, both, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(base[1], 40 + previous_rank());
    CHECK_EQ(base[0], 3);
    OK(MPI_Type_free(&both));
    OK(MPI_Type_free(&nothing));
}

static void wrong(MPI_Win win)
{
    long values[2] = {1, 2}, got[2];
    const int target = next_rank();
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    EXPECT(MPI_Put_c(values, -1, MPI_LONG, target, 0, 1, MPI_LONG, win), MPI_ERR_COUNT);
    EXPECT(MPI_Get_c(got, 1, MPI_LONG, target, 0, -huge, MPI_LONG, win), MPI_ERR_COUNT);
    EXPECT(MPI_Put_c(values, huge, MPI_LONG, target, 0, huge, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Get_c(got, huge, MPI_LONG, target, 0, huge, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    // 2^32 more than is right must not be taken for right.
    const MPI_Count wraps = ((MPI_Count)1 << 32) + 1;
    EXPECT(MPI_Put_c(values, wraps, MPI_LONG, target, 0, wraps, MPI_LONG, win),
           MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Accumulate_c(values, wraps, MPI_LONG, target, 0, wraps, MPI_LONG, MPI_SUM, win),
           MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Get_accumulate_c(values, wraps, MPI_LONG, got, wraps, MPI_LONG, target, 0, wraps,
                                MPI_LONG, MPI_SUM, win), MPI_ERR_RMA_RANGE);
    // The bytes are no number of 64 bits.
    EXPECT(MPI_Put_c(values, most, MPI_LONG, target, 0, most, MPI_LONG, win), MPI_ERR_RMA_RANGE,
           MPI_ERR_COUNT);
    EXPECT(MPI_Get_c(got, most / 8 + 2, MPI_LONG, target, 0, most / 8 + 2, MPI_LONG, win),
           MPI_ERR_RMA_RANGE, MPI_ERR_COUNT);
    EXPECT(MPI_Put(values, 1, MPI_LONG, target, (MPI_Aint)(most / 4), 1, MPI_LONG, win),
           MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
    EXPECT(MPI_Put(values, 1, MPI_LONG, target, (MPI_Aint)1 << 61, 1, MPI_LONG, win),
           MPI_ERR_RMA_RANGE, MPI_ERR_DISP);
    OK(MPI_Win_unlock(target, win));
}

static void try(void)
{
    MPI_Win win;
    long *base = returning_window_of(64, 8, &win);
    base[0] = 3;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    nothing_moves(win, base);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    large_type(win, base);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    wrong(win);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(base[0], 3);
    OK(MPI_Win_free(&win));
}

#else

static void try(void) {}

#endif

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    try();
    return check_end();
}
