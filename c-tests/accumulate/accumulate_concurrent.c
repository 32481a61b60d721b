// All ranks update the same words at once, each with another call of the accumulate family, and no
// update is lost. MPI-4.1 section 12.7.1.
// ranks: 1 2 4 8
// plain ranks: 1 2 4

#include "check.h"

enum { ROUNDS = 60, WIDE = 100 };

static MPI_Win win;

static void add_by_compare_and_swap(int target, MPI_Aint disp)
{
    int64_t seen = 0, wanted, before;
    OK(MPI_Fetch_and_op(NULL, &seen, MPI_INT64_T, target, disp, MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
    for (;;) {
        wanted = seen + 1;
        OK(MPI_Compare_and_swap(&wanted, &seen, &before, MPI_INT64_T, target, disp, win));
        OK(MPI_Win_flush(target, win));
        if (before == seen)
            return;
        seen = before;
    }
}

static void add_one(int call, int target, MPI_Aint disp)
{
    const int64_t one = 1;
    int64_t before = -1;
    MPI_Request request;
    switch (call % 6) {
    case 0:
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T, MPI_SUM, win));
        break;
    case 1:
        OK(MPI_Get_accumulate(&one, 1, MPI_INT64_T, &before, 1, MPI_INT64_T, target, disp, 1,
                              MPI_INT64_T, MPI_SUM, win));
        break;
    case 2: OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, disp, MPI_SUM, win)); break;
    case 3: add_by_compare_and_swap(target, disp); break;
    case 4:
        OK(MPI_Raccumulate(&one, 1, MPI_INT64_T, target, disp, 1, MPI_INT64_T, MPI_SUM, win,
                           &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    case 5:
        OK(MPI_Rget_accumulate(&one, 1, MPI_INT64_T, &before, 1, MPI_INT64_T, target, disp, 1,
                               MPI_INT64_T, MPI_SUM, win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    }
    OK(MPI_Win_flush(target, win));
}

// A long vector that covers the single word, so that one element and many meet.
static void add_many(int target)
{
    int64_t ones[WIDE];
    for (int i = 0; i < WIDE; i++)
        ones[i] = 1;
    OK(MPI_Accumulate(ones, WIDE, MPI_INT64_T, target, 0, WIDE, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int64_t *base = window_of((WIDE + 4) * sizeof(int64_t), sizeof(int64_t), &win);
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++) {
        add_one(rank + round, 0, WIDE / 2);
        if (round % 4 == 0)
            add_many(0);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int i = 0; rank == 0 && i < WIDE; i++)
        CHECK_EQ(base[i], size * (ROUNDS / 4 + (i == WIDE / 2 ? ROUNDS : 0)));
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
