// With MPI_THREAD_MULTIPLE the threads of each rank use many windows of all flavours at once: each
// locks, flushes, accumulates and syncs on windows that all threads have and on some that are made
// and freed meanwhile by others, in orders of its own. MPI-4.1 sections 11.6 and 12.5.
// ranks: 1 2 4
// plain ranks: 2

#include "nodes.h"
#include "threads.h"

enum { THREADS = 4, FLAVORS = 4, PER_FLAVOR = 3, WINDOWS = FLAVORS * PER_FLAVOR, ROUNDS = 60,
       LONGS = 64, COUNT = 20 };

static struct window {
    MPI_Win win;
    long *base, memory[LONGS];
    MPI_Aint there, unit; // displacement 0 of the next rank, and what one long more adds
} all[WINDOWS];

static MPI_Comm comms[THREADS];

static void make(struct window *w, int flavor)
{
    const MPI_Aint bytes = LONGS * sizeof(long);
    MPI_Aint here;
    w->base = w->memory;
    w->unit = 1;
    if (flavor == 0)
        OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &w->base, &w->win));
    if (flavor == 1)
        allocate_shared_if_possible(bytes, MPI_COMM_WORLD, &w->base, &w->win);
    if (flavor == 2)
        OK(MPI_Win_create(w->memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &w->win));
    memset(w->base, 0, (size_t)bytes);
    if (flavor == 3) {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w->win));
        OK(MPI_Win_attach(w->win, w->memory, bytes));
        OK(MPI_Get_address(w->memory, &here));
        OK(MPI_Sendrecv(&here, 1, MPI_AINT, previous_rank(), 0, &w->there, 1, MPI_AINT, next_rank(),
                        0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        w->unit = sizeof(long);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, w->win));
}

static MPI_Aint place(const struct window *w, int at)
{
    return w->there + at * w->unit;
}

// The first longs belong to all threads, then each has one of its own.
static void one_round(int thread, int round)
{
    const struct window *w = &all[(7 * round + 5 * thread) % WINDOWS];
    const int target = next_rank();
    const long one = 1, mine = 1000 * thread + round;
    long ones[COUNT], before[COUNT], got = -1;
    MPI_Request request;
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    OK(MPI_Accumulate(ones, COUNT, MPI_LONG, target, place(w, 0), COUNT, MPI_LONG, MPI_SUM, w->win));
    OK(MPI_Put(&mine, 1, MPI_LONG, target, place(w, COUNT + thread), 1, MPI_LONG, w->win));
    if (round % 3 == 0)
        OK(MPI_Win_flush_all(w->win));
    else
        OK(MPI_Win_flush(target, w->win));
    OK(MPI_Rget(&got, 1, MPI_LONG, target, place(w, COUNT + thread), 1, MPI_LONG, w->win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(got, mine);
    OK(MPI_Get_accumulate(ones, COUNT, MPI_LONG, before, COUNT, MPI_LONG, target, place(w, 0),
                          COUNT, MPI_LONG, MPI_SUM, w->win));
    OK(MPI_Win_flush_local(target, w->win));
    CHECK(before[COUNT - 1] > 0);
    OK(MPI_Fetch_and_op(&one, before, MPI_LONG, target, place(w, 0), MPI_SUM, w->win));
    OK(MPI_Win_flush_local_all(w->win));
    OK(MPI_Win_sync(w->win));
}

// A window of this thread and its likes on the other ranks, with locks of its own.
static void passing(int thread, int round)
{
    MPI_Win win;
    long *base, value = 100 * thread + round, got = -1;
    OK(MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, comms[thread], &base, &win));
    OK(MPI_Win_lock(round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), 1, 1, MPI_LONG, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Get(&got, 1, MPI_LONG, next_rank(), 1, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(got, value);
    OK(MPI_Win_free(&win));
}

static void *work(void *argument)
{
    const int thread = *(int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        one_round(thread, round);
        if (round % 10 == thread)
            passing(thread, round);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (!check_start_threads(&argc, &argv))
        return check_end();
    for (int i = 0; i < WINDOWS; i++)
        make(&all[i], i % FLAVORS);
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
    run_numbered_threads(THREADS, work);
    for (int i = 0; i < WINDOWS; i++)
        OK(MPI_Win_unlock_all(all[i].win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long rounds[WINDOWS] = {0};
    for (int t = 0; t < THREADS; t++)
        for (int r = 0; r < ROUNDS; r++)
            rounds[(7 * r + 5 * t) % WINDOWS]++;
    for (int i = 0; i < WINDOWS; i++) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, all[i].win));
        for (int at = 0; at < COUNT; at++)
            CHECK_EQ(all[i].base[at], 2 * rounds[i] + (at == 0 ? rounds[i] : 0));
        OK(MPI_Win_unlock(rank, all[i].win));
        OK(MPI_Win_free(&all[i].win));
    }
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_free(&comms[t]));
    return check_end();
}
