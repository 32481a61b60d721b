// Every communication call reaches attached memory: put, get, the accumulate calls, and those with
// requests; with no element, and with MPI_PROC_NULL, they touch nothing. MPI-4.1 section 12.3.
// ranks: 1 2 4

#include "dynamic.h"

enum { COUNT = 300, SLOTS = 8 };

static MPI_Win win;
static int target;
static MPI_Aint there;

static MPI_Aint slot(int number)
{
    return MPI_Aint_add(there, (MPI_Aint)(number * COUNT * sizeof(int64_t)));
}

static void plain_calls(void)
{
    int64_t values[COUNT], got[COUNT], before[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = 1000 + i;
    OK(MPI_Put(values, COUNT, MPI_INT64_T, target, slot(0), COUNT, MPI_INT64_T, win));
    OK(MPI_Get(got, COUNT, MPI_INT64_T, target, slot(1), COUNT, MPI_INT64_T, win));
    OK(MPI_Accumulate(values, COUNT, MPI_INT64_T, target, slot(2), COUNT, MPI_INT64_T, MPI_SUM,
                      win));
    OK(MPI_Get_accumulate(values, COUNT, MPI_INT64_T, before, COUNT, MPI_INT64_T, target, slot(3),
                          COUNT, MPI_INT64_T, MPI_REPLACE, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(got[i], i);
        CHECK_EQ(before[i], i);
    }
}

static void calls_with_requests(void)
{
    MPI_Request request[4];
    int64_t values[COUNT], got[COUNT], before[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = 1000 + i;
    OK(MPI_Rput(values, COUNT, MPI_INT64_T, target, slot(4), COUNT, MPI_INT64_T, win,
                &request[0]));
    OK(MPI_Rget(got, COUNT, MPI_INT64_T, target, slot(1), COUNT, MPI_INT64_T, win, &request[1]));
    OK(MPI_Raccumulate(values, COUNT, MPI_INT64_T, target, slot(5), COUNT, MPI_INT64_T, MPI_SUM,
                       win, &request[2]));
    OK(MPI_Rget_accumulate(values, COUNT, MPI_INT64_T, before, COUNT, MPI_INT64_T, target, slot(6),
                           COUNT, MPI_INT64_T, MPI_REPLACE, win, &request[3]));
    OK(MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(got[i], i);
        CHECK_EQ(before[i], i);
    }
    OK(MPI_Win_flush(target, win));
}

static void single_elements(void)
{
    const int64_t one = 1, three = 3, hundred = 100;
    int64_t before[4] = {-1, -1, -1, -1};
    OK(MPI_Fetch_and_op(&hundred, &before[0], MPI_INT64_T, target, slot(7), MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Fetch_and_op(NULL, &before[1], MPI_INT64_T, target, slot(7), MPI_NO_OP, win));
    OK(MPI_Compare_and_swap(&three, &one, &before[2], MPI_INT64_T, target,
                            MPI_Aint_add(slot(7), 8), win));
    OK(MPI_Compare_and_swap(&three, &one, &before[3], MPI_INT64_T, target,
                            MPI_Aint_add(slot(7), 16), win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(before[0], 0);
    CHECK_EQ(before[1], 100);
    CHECK_EQ(before[2], 1);
    CHECK_EQ(before[3], 2);
}

static void nothing_to_do(void)
{
    int64_t value = 7, got = 8;
    OK(MPI_Put(&value, 0, MPI_INT64_T, target, slot(0), 0, MPI_INT64_T, win));
    OK(MPI_Get(&got, 0, MPI_INT64_T, target, slot(0), 0, MPI_INT64_T, win));
    OK(MPI_Accumulate(&value, 0, MPI_INT64_T, target, slot(SLOTS), 0, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win));
    OK(MPI_Get(&got, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win));
    OK(MPI_Fetch_and_op(&value, &got, MPI_INT64_T, MPI_PROC_NULL, 0, MPI_SUM, win));
    OK(MPI_Win_flush_all(win));
    CHECK_EQ(got, 8);
}

static void was_reached(const int64_t *memory)
{
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(memory[i], 1000 + i);
        CHECK_EQ(memory[COUNT + i], i);
        CHECK_EQ(memory[2 * COUNT + i], 1000 + 2 * i);
        CHECK_EQ(memory[3 * COUNT + i], 1000 + i);
        CHECK_EQ(memory[4 * COUNT + i], 1000 + i);
        CHECK_EQ(memory[5 * COUNT + i], 1000 + 2 * i);
        CHECK_EQ(memory[6 * COUNT + i], 1000 + i);
        CHECK_EQ(memory[7 * COUNT + i], i == 0 ? 100 : i == 1 ? 3 : i);
    }
}

int main(int argc, char **argv)
{
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    win = dynamic_window();
    int64_t *memory = malloc(SLOTS * COUNT * sizeof *memory);
    for (int i = 0; i < SLOTS * COUNT; i++)
        memory[i] = i % COUNT;
    OK(MPI_Win_attach(win, memory, SLOTS * COUNT * sizeof *memory));
    exchange(memory, places);
    target = next_rank();
    there = places[target];
    OK(MPI_Win_lock_all(0, win));
    plain_calls();
    calls_with_requests();
    nothing_to_do();
    single_elements();
    settle(win);
    was_reached(memory);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
    free(memory);
    return check_end();
}
