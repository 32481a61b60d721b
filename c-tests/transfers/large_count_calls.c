// The calls with MPI_Count arguments (MPI_Put_c and its like) do what their short twins do.
// MPI-4.1 section 12.3. An MPI without them has nothing to show here.
// ranks: 1 2 4
// between nodes: shared windows are left to the host MPI

#include "check.h"

#if MPI_VERSION >= 4

enum { COUNT = 16 };

static void moves(MPI_Win win, long *base)
{
    long sent[COUNT], got[COUNT];
    const MPI_Count count = COUNT;
    for (int i = 0; i < COUNT; i++)
        sent[i] = 100 * rank + i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put_c(sent, count, MPI_LONG, next_rank(), 0, count, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[COUNT - 1], 100 * previous_rank() + COUNT - 1);
    OK(MPI_Get_c(got, count, MPI_LONG, next_rank(), 0, count, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK(memcmp(sent, got, sizeof got) == 0);
    OK(MPI_Accumulate_c(sent, count, MPI_LONG, next_rank(), 0, count, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[1], 2 * (100 * previous_rank() + 1));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate_c(sent, count, MPI_LONG, got, count, MPI_LONG, next_rank(), 0, count,
                            MPI_LONG, MPI_REPLACE, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(got[2], 2 * sent[2]);
    CHECK_EQ(base[2], 100 * previous_rank() + 2);
}

static void requests(MPI_Win win)
{
    long sent[COUNT], got[COUNT], before[COUNT];
    const MPI_Count count = COUNT;
    MPI_Request request;
    for (int i = 0; i < COUNT; i++)
        sent[i] = 7 * rank + i;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Rput_c(sent, count, MPI_LONG, next_rank(), 0, count, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Raccumulate_c(sent, count, MPI_LONG, next_rank(), 0, count, MPI_LONG, MPI_SUM, win,
                         &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Rget_accumulate_c(sent, count, MPI_LONG, before, count, MPI_LONG, next_rank(), 0, count,
                             MPI_LONG, MPI_SUM, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Rget_c(got, count, MPI_LONG, next_rank(), 0, count, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock(next_rank(), win));
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(before[i], 2 * sent[i]);
        CHECK_EQ(got[i], 3 * sent[i]);
    }
}

static void windows(void)
{
    static long memory[COUNT];
    MPI_Win win;
    MPI_Aint bytes, disp_unit;
    void *base, *part;
    OK(MPI_Win_allocate_c(16 * COUNT, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    moves(win, base);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    requests(win);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_allocate_shared_c(16 * COUNT, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                                 &win));
    moves(win, base);
    OK(MPI_Win_shared_query_c(win, rank, &bytes, &disp_unit, &part));
    CHECK_EQ(bytes, 16 * COUNT);
    CHECK_EQ(disp_unit, sizeof(long));
    CHECK(part == base);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_c(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    moves(win, memory);
    OK(MPI_Win_free(&win));
}

#else

static void windows(void) {}

#endif

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    windows();
    return check_end();
}
