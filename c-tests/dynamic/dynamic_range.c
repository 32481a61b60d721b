// An access outside of all attached memory, partly outside, or after it was detached is
// MPI_ERR_RMA_RANGE, and nothing is moved. MPI-4.1 sections 12.2.4 and 12.6.2.
// ranks: 1 2 4

#include "dynamic.h"

enum { LONGS = 64, FIRST = 16, COUNT = 8 };

static MPI_Win win;
static int64_t memory[LONGS];
static MPI_Aint there;

static MPI_Aint place(int element)
{
    return MPI_Aint_add(there, element * (MPI_Aint)sizeof(int64_t));
}

// None of the calls reaches `count` words at the address, nor changes anything here.
static void outside_at(MPI_Aint address, int count)
{
    int64_t values[LONGS], got[LONGS];
    const int target = next_rank();
    MPI_Request request;
    memset(values, 1, sizeof values);
    memset(got, 2, sizeof got);
    EXPECT(MPI_Put(values, count, MPI_INT64_T, target, address, count, MPI_INT64_T, win),
           MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Get(got, count, MPI_INT64_T, target, address, count, MPI_INT64_T, win),
           MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Accumulate(values, count, MPI_INT64_T, target, address, count, MPI_INT64_T, MPI_SUM,
                          win), MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Get_accumulate(values, count, MPI_INT64_T, got, count, MPI_INT64_T, target, address,
                              count, MPI_INT64_T, MPI_SUM, win), MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Rput(values, count, MPI_INT64_T, target, address, count, MPI_INT64_T, win,
                    &request), MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Rget(got, count, MPI_INT64_T, target, address, count, MPI_INT64_T, win, &request),
           MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Raccumulate(values, count, MPI_INT64_T, target, address, count, MPI_INT64_T,
                           MPI_SUM, win, &request), MPI_ERR_RMA_RANGE);
    if (count == 1) {
        EXPECT(MPI_Fetch_and_op(values, got, MPI_INT64_T, target, address, MPI_SUM, win),
               MPI_ERR_RMA_RANGE);
        EXPECT(MPI_Compare_and_swap(values, values, got, MPI_INT64_T, target, address, win),
               MPI_ERR_RMA_RANGE);
    }
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(got[i], 0x0202020202020202);
}

// The whole words around the region [FIRST, FIRST + COUNT), and parts of words at its ends.
static void around(void)
{
    outside_at(place(0), 1);
    outside_at(place(FIRST - 1), 1);
    outside_at(place(FIRST + COUNT), 1);
    outside_at(place(FIRST - 1), 2);
    outside_at(place(FIRST - 1), COUNT + 2);
    outside_at(place(FIRST + 1), COUNT);
    outside_at(place(FIRST), COUNT + 1);
    outside_at(MPI_Aint_add(place(FIRST), -1), 1);
    outside_at(MPI_Aint_add(place(FIRST + COUNT), -7), 1);
}

static void far_away(void)
{
    outside_at(0, 1);
    outside_at(-8, 1);
    outside_at(-1, LONGS);
    outside_at(INT64_MAX, 1);
    outside_at(INT64_MIN, 2);
    outside_at(MPI_Aint_add(there, (MPI_Aint)1 << 46), 1);
}

// Shapes that are partly inside, and a shape whose holes alone are outside.
static void shapes(void)
{
    int64_t values[4] = {9, 9, 9, 9};
    MPI_Datatype wide, backwards, around_it;
    OK(MPI_Type_vector(2, 1, COUNT, MPI_INT64_T, &wide));
    OK(MPI_Type_vector(2, 1, -2, MPI_INT64_T, &backwards));
    OK(MPI_Type_create_resized(MPI_INT64_T, -800, 1600, &around_it));
    OK(MPI_Type_commit(&wide));
    OK(MPI_Type_commit(&backwards));
    OK(MPI_Type_commit(&around_it));
    EXPECT(MPI_Put(values, 2, MPI_INT64_T, next_rank(), place(FIRST), 1, wide, win),
           MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Put(values, 2, MPI_INT64_T, next_rank(), place(FIRST + 1), 1, backwards, win),
           MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Accumulate(values, 2, MPI_INT64_T, next_rank(), place(FIRST + 1), 1, backwards,
                          MPI_SUM, win), MPI_ERR_RMA_RANGE);
    OK(MPI_Put(values, 1, MPI_INT64_T, next_rank(), place(FIRST + 2), 1, around_it, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Type_free(&wide));
    OK(MPI_Type_free(&backwards));
    OK(MPI_Type_free(&around_it));
}

static void only_changed(int element)
{
    settle(win);
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(memory[i], i == element ? 9 : 100 + i);
    settle(win);
}

int main(int argc, char **argv)
{
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    win = dynamic_window();
    for (int i = 0; i < LONGS; i++)
        memory[i] = 100 + i;
    exchange(memory, places);
    there = places[next_rank()];
    OK(MPI_Win_lock_all(0, win));
    // Nothing is attached yet, nowhere.
    outside_at(place(FIRST), 1);
    settle(win);
    OK(MPI_Win_attach(win, memory + FIRST, COUNT * sizeof(int64_t)));
    settle(win);
    around();
    far_away();
    only_changed(-1);
    shapes();
    only_changed(FIRST + 2);
    OK(MPI_Win_detach(win, memory + FIRST));
    settle(win);
    outside_at(place(FIRST), 1);
    outside_at(place(FIRST), COUNT);
    only_changed(FIRST + 2);
    // The same base again, but less after it.
    OK(MPI_Win_attach(win, memory + FIRST, sizeof(int64_t)));
    settle(win);
    outside_at(place(FIRST), 2);
    outside_at(place(FIRST + 1), 1);
    only_changed(FIRST + 2);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
