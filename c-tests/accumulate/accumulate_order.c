// Accumulates from one origin to the same place take effect in the order of the program: read after
// read, read after write, write after read, write after write. MPI-4.1 section 12.7.2.
// ranks: 1 2 4

#include "check.h"

enum { ROUNDS = 30, COUNT = 50 };

static MPI_Win win;

static void write_word(int64_t value, MPI_Aint disp)
{
    OK(MPI_Accumulate(&value, 1, MPI_INT64_T, next_rank(), disp, 1, MPI_INT64_T, MPI_REPLACE,
                      win));
    OK(MPI_Win_flush_local(next_rank(), win));
}

// Write, read and write the same word without a flush at the target between them.
static void one_word(void)
{
    int64_t seen[4 * ROUNDS], step[4 * ROUNDS];
    int n = 0;
    for (int64_t i = 0; i < ROUNDS; i++) {
        step[n] = 10 * i;
        OK(MPI_Accumulate(&step[n], 1, MPI_INT64_T, next_rank(), 0, 1, MPI_INT64_T, MPI_REPLACE,
                          win));
        OK(MPI_Fetch_and_op(NULL, &seen[n], MPI_INT64_T, next_rank(), 0, MPI_NO_OP, win));
        step[n + 1] = 10 * i + 5;
        OK(MPI_Fetch_and_op(&step[n + 1], &seen[n + 1], MPI_INT64_T, next_rank(), 0, MPI_REPLACE,
                            win));
        OK(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &seen[n + 2], 1, MPI_INT64_T, next_rank(), 0,
                              1, MPI_INT64_T, MPI_NO_OP, win));
        step[n + 3] = 10 * i + 5;
        OK(MPI_Compare_and_swap(&step[n], &step[n + 3], &seen[n + 3], MPI_INT64_T, next_rank(), 0,
                                win));
        n += 4;
    }
    OK(MPI_Win_flush(next_rank(), win));
    for (int i = 0; i < n; i += 4) {
        CHECK_EQ(seen[i], step[i]);
        CHECK_EQ(seen[i + 1], step[i]);
        CHECK_EQ(seen[i + 2], step[i + 1]);
        CHECK_EQ(seen[i + 3], step[i + 1]);
    }
}

// The last of many overlapping writes stays, and a wide one overtakes no narrow one.
static void wide_and_narrow(void)
{
    int64_t wide[COUNT], got[COUNT], last = -7;
    for (int64_t round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            wide[i] = 1000 * round + i;
        OK(MPI_Accumulate(wide, COUNT, MPI_INT64_T, next_rank(), 0, COUNT, MPI_INT64_T,
                          MPI_REPLACE, win));
        OK(MPI_Accumulate(&last, 1, MPI_INT64_T, next_rank(), round, 1, MPI_INT64_T, MPI_REPLACE,
                          win));
        OK(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, got, COUNT, MPI_INT64_T, next_rank(), 0, COUNT,
                              MPI_INT64_T, MPI_NO_OP, win));
        OK(MPI_Win_flush(next_rank(), win));
        for (int i = 0; i < COUNT; i++)
            CHECK_EQ(got[i], i == round ? last : 1000 * round + i);
    }
}

// A reader at the target sees the words of one writer change in the writer's order.
static void seen_in_order(void)
{
    int64_t first, second;
    for (int64_t round = 1; round <= ROUNDS; round++) {
        write_word(round, 60);
        OK(MPI_Win_flush(next_rank(), win));
        write_word(round, 61);
        OK(MPI_Fetch_and_op(NULL, &second, MPI_INT64_T, rank, 61, MPI_NO_OP, win));
        OK(MPI_Win_flush(rank, win));
        OK(MPI_Fetch_and_op(NULL, &first, MPI_INT64_T, rank, 60, MPI_NO_OP, win));
        OK(MPI_Win_flush(rank, win));
        CHECK(first >= second);
    }
}

// MPI_NO_OP needs no operands, also for other types than predefined ones.
static void without_operands(void)
{
    int64_t got[4] = {0}, wide[4] = {1, 2, 3, 4};
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_INT64_T, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Accumulate(wide, 4, MPI_INT64_T, next_rank(), 8, 4, MPI_INT64_T, MPI_REPLACE, win));
    OK(MPI_Get_accumulate(NULL, 0, pair, got, 2, pair, next_rank(), 8, 2, pair, MPI_NO_OP, win));
    OK(MPI_Win_flush(next_rank(), win));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(got[i], wide[i]);
    OK(MPI_Type_free(&pair));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    window_of(64 * sizeof(int64_t), sizeof(int64_t), &win);
    OK(MPI_Win_lock_all(0, win));
    one_word();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    wide_and_narrow();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    seen_in_order();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    without_operands();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
