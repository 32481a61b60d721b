// Every kind of synchronisation on one created window, one after the other and again: fence,
// post-start-complete-wait, locks, lock_all with all the flushes. MPI-4.1 section 12.5.
// ranks: 1 2 3 4

#include "created.h"

enum { COUNT = 2000, ROUNDS = 4 };

static long *memory;
static MPI_Win win;
static long values[COUNT];

static void new_values(int salt)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = 100000L * salt + 1000 * rank + i;
}

static void check_memory(int salt)
{
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(memory[i], 100000 * salt + 1000 * previous_rank() + i);
}

static void fences(int salt)
{
    new_values(salt);
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    check_memory(salt);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// The group of one rank.
static MPI_Group group_of(int member)
{
    MPI_Group world, group;
    OK(MPI_Win_get_group(win, &world));
    OK(MPI_Group_incl(world, 1, &member, &group));
    OK(MPI_Group_free(&world));
    return group;
}

static void post_start_complete_wait(int salt)
{
    MPI_Group from = group_of(previous_rank()), to = group_of(next_rank());
    new_values(salt);
    OK(MPI_Win_post(from, 0, win));
    OK(MPI_Win_start(to, 0, win));
    OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, win));
    OK(MPI_Win_complete(win));
    if (salt % 2 == 0) {
        OK(MPI_Win_wait(win));
    } else {
        int done = 0;
        while (!done)
            OK(MPI_Win_test(win, &done));
    }
    check_memory(salt);
    OK(MPI_Group_free(&from));
    OK(MPI_Group_free(&to));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void locks(int salt, int type)
{
    const long one = 1;
    long got[COUNT];
    new_values(salt);
    values[0] = 0;
    OK(MPI_Win_lock(type, next_rank(), 0, win));
    OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // All count in one place, each under a lock of its own.
    OK(MPI_Win_lock(type, 0, 0, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_lock(type, next_rank(), 0, win));
    OK(MPI_Get(got, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK(memcmp(got + 1, values + 1, sizeof got - sizeof *got) == 0);
    lock_own_memory(win);
    CHECK_EQ(memory[0], rank == 0 ? size : 0);
    CHECK_EQ(memory[COUNT - 1], 100000 * salt + 1000 * previous_rank() + COUNT - 1);
    unlock_own_memory(win);
}

// Get, add and put under an exclusive lock: nobody comes in between.
static void read_modify_write(void)
{
    long seen;
    lock_own_memory(win);
    memory[5] = 0;
    unlock_own_memory(win);
    for (int i = 0; i < 10; i++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win));
        OK(MPI_Get(&seen, 1, MPI_LONG, size - 1, 5, 1, MPI_LONG, win));
        OK(MPI_Win_flush(size - 1, win));
        seen++;
        OK(MPI_Put(&seen, 1, MPI_LONG, size - 1, 5, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(size - 1, win));
    }
    lock_own_memory(win);
    CHECK_EQ(memory[5], rank == size - 1 ? 10 * size : 0);
    unlock_own_memory(win);
}

static void flushes(int salt)
{
    long got = -1;
    new_values(salt);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), 0, COUNT, MPI_LONG, win));
    OK(MPI_Win_flush_local(next_rank(), win));
    new_values(0);
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Get(&got, 1, MPI_LONG, next_rank(), 9, 1, MPI_LONG, win));
    OK(MPI_Win_flush_local_all(win));
    CHECK_EQ(got, 100000 * salt + 1000 * rank + 9);
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    check_memory(salt);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    memory = heap_memory(COUNT * sizeof(long));
    win = window_over(memory, COUNT * sizeof(long), sizeof(long));
    for (int round = 0; round < ROUNDS; round++) {
        fences(5 * round + 1);
        post_start_complete_wait(5 * round + 2);
        locks(5 * round + 3, MPI_LOCK_SHARED);
        locks(5 * round + 4, MPI_LOCK_EXCLUSIVE);
        read_modify_write();
        flushes(5 * round + 5);
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
