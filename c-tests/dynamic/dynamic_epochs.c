// Attached memory is reached in every kind of epoch: fence, post-start-complete-wait, shared and
// exclusive locks, lock_all with every kind of flush. MPI-4.1 sections 12.2.4 and 12.5.
// ranks: 1 2 4

#include "dynamic.h"

enum { COUNT = 2000 };

static MPI_Win win;
static long memory[COUNT];
static MPI_Aint places[RANKS_MAX];
static long values[COUNT];

static void put_to(int target, long mark)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = 100000 * mark + 10000 * rank + i;
    OK(MPI_Put(values, COUNT, MPI_LONG, target, places[target], COUNT, MPI_LONG, win));
}

static void was_put_by(int origin, long mark)
{
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(memory[i], 100000 * mark + 10000 * origin + i);
}

static void fences(void)
{
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    put_to(next_rank(), 1);
    OK(MPI_Win_fence(0, win));
    was_put_by(previous_rank(), 1);
    OK(MPI_Win_fence(0, win));
    put_to(previous_rank(), 2);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    was_put_by(next_rank(), 2);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void post_and_start(int with_test)
{
    MPI_Group all, to, from;
    int flag = 0;
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, 1, (int[]){next_rank()}, &to));
    OK(MPI_Group_incl(all, 1, (int[]){previous_rank()}, &from));
    OK(MPI_Win_post(from, 0, win));
    OK(MPI_Win_start(to, 0, win));
    put_to(next_rank(), 3 + with_test);
    OK(MPI_Win_complete(win));
    while (with_test && !flag)
        OK(MPI_Win_test(win, &flag));
    if (!with_test)
        OK(MPI_Win_wait(win));
    was_put_by(previous_rank(), 3 + with_test);
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
    OK(MPI_Group_free(&all));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void locks(int type, long mark)
{
    OK(MPI_Win_lock(type, next_rank(), 0, win));
    put_to(next_rank(), mark);
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    was_put_by(previous_rank(), mark);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Exclusive locks keep the counting of one rank apart from that of another.
static void exclusive_counts(void)
{
    long got = -1;
    memory[0] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 20; i++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(&got, 1, MPI_LONG, 0, places[0], 1, MPI_LONG, win));
        OK(MPI_Win_flush(0, win));
        got++;
        OK(MPI_Put(&got, 1, MPI_LONG, 0, places[0], 1, MPI_LONG, win));
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK(rank != 0 || memory[0] == 20 * size);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void flushes(void)
{
    long got[4] = {-1, -1, -1, -1};
    OK(MPI_Win_lock_all(0, win));
    put_to(next_rank(), 7);
    OK(MPI_Win_flush_local(next_rank(), win));
    put_to(next_rank(), 8);
    OK(MPI_Win_flush_local_all(win));
    OK(MPI_Win_flush(next_rank(), win));
    for (int i = 0; i < 4; i++)
        OK(MPI_Get(&got[i], 1, MPI_LONG, next_rank(),
                   MPI_Aint_add(places[next_rank()], i * (MPI_Aint)sizeof(long)), 1, MPI_LONG,
                   win));
    OK(MPI_Win_flush_all(win));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(got[i], 800000 + 10000 * rank + i);
    settle(win);
    was_put_by(previous_rank(), 8);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    win = dynamic_window();
    OK(MPI_Win_attach(win, memory, sizeof memory));
    exchange(memory, places);
    fences();
    post_and_start(0);
    post_and_start(1);
    locks(MPI_LOCK_EXCLUSIVE, 5);
    locks(MPI_LOCK_SHARED, 6);
    exclusive_counts();
    flushes();
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
    return check_end();
}
