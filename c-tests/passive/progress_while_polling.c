// A rank that polls its window, with messages under way, lets the rest of MPI progress whatever calls
// it repeats: the other rank is done with the messages, and then sets the flag. MPI-4.1 sections 2.9
// and 3.7.4.
// Calls with nothing to do are in progress_of_short_calls.c.
// ranks: 2 3

#include "polling.h"

static MPI_Group other;
static long nothing;

static void fetch_and_flush(int target)
{
    OK(MPI_Fetch_and_op(NULL, &flag, MPI_LONG, target, 0, MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
}

static void fetch_and_flush_local(int target)
{
    OK(MPI_Fetch_and_op(NULL, &flag, MPI_LONG, target, 0, MPI_NO_OP, win));
    OK(MPI_Win_flush_local(target, win));
}

static void get_and_flush_all(int target)
{
    OK(MPI_Get(&flag, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_flush_all(win));
}

static void get_and_flush_local_all(int target)
{
    OK(MPI_Get(&flag, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_flush_local_all(win));
}

static void bytes_and_flush(int target)
{
    OK(MPI_Get(&flag, sizeof flag, MPI_BYTE, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
}

static void get_accumulate_and_flush(int target)
{
    OK(MPI_Get_accumulate(&zero, 1, MPI_LONG, &flag, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM,
                          win));
    OK(MPI_Win_flush(target, win));
}

static void lock_and_get(int target)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Get(&flag, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
}

static void lock_exclusive_and_get(int target)
{
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Get(&flag, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
}

static void lock_all_and_get(int target)
{
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Get(&flag, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_unlock_all(win));
}

static void flush(int target)
{
    OK(MPI_Win_flush(target, win));
    load();
}

static void flush_local(int target)
{
    OK(MPI_Win_flush_local(target, win));
    load();
}

static void flush_all(int target)
{
    (void)target;
    OK(MPI_Win_flush_all(win));
    load();
}

static void flush_local_all(int target)
{
    (void)target;
    OK(MPI_Win_flush_local_all(win));
    load();
}

static void put_and_flush(int target)
{
    OK(MPI_Put(&zero, 1, MPI_LONG, target, 1, 1, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    load();
}

static void accumulate_and_flush(int target)
{
    OK(MPI_Accumulate(&zero, 1, MPI_LONG, target, 1, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    load();
}

static void nothing_and_flush(int target)
{
    OK(MPI_Get(&nothing, 0, MPI_LONG, target, 0, 0, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    load();
}

static void lock_and_unlock(int target)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Win_unlock(target, win));
    load();
}

static const Poll in_lock_all[] = {
    fetch_and_flush, fetch_and_flush_local, get_and_flush_all, get_and_flush_local_all,
    bytes_and_flush, get_accumulate_and_flush,
};
static const Poll locking[] = {lock_and_get, lock_exclusive_and_get, lock_all_and_get};
static const Poll loading_in_lock_all[] = {flush, flush_local, flush_all, flush_local_all,
                                           put_and_flush, accumulate_and_flush, nothing_and_flush};
static const Poll loading[] = {lock_and_unlock};

// Rank 0 repeats MPI_Win_test; rank 1 starts and completes when it has both messages.
static void poll_by_test(void)
{
    MPI_Request requests[2];
    int done = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        start_messages(requests);
        OK(MPI_Win_post(other, 0, win));
        while (!done)
            OK(MPI_Win_test(win, &done));
        end_messages(requests);
    } else if (rank == 1) {
        finish_messages();
        OK(MPI_Win_start(other, 0, win));
        OK(MPI_Win_complete(win));
    }
}

// Rank 0 and the last rank repeat fences until rank 1 has set the flag of rank 0.
static void poll_by_fences(MPI_Win fenced, const long *stop)
{
    MPI_Request requests[2];
    long before = flags[0], yes = 1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1) {
        finish_and_set(0, -1);
        return;
    }
    if (rank == 0)
        start_messages(requests);
    do {
        OK(MPI_Win_fence(0, fenced));
        if (rank == 0 && flags[0] != before) {
            OK(MPI_Put(&yes, 1, MPI_LONG, 0, 0, 1, MPI_LONG, fenced));
            OK(MPI_Put(&yes, 1, MPI_LONG, 1, 0, 1, MPI_LONG, fenced));
        }
        OK(MPI_Win_fence(0, fenced));
    } while (*(volatile const long *)stop == 0);
    if (rank == 0)
        end_messages(requests);
}

// Both ranks but the receiver, where there are three, have a window on which they repeat fences.
static void poll_on_another_window(void)
{
    MPI_Comm pair;
    MPI_Win fenced;
    long *stop;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 0, rank, &pair));
    if (rank == 1) {
        poll_by_fences(MPI_WIN_NULL, NULL);
        return;
    }
    OK(MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, pair, &stop, &fenced));
    *stop = 0;
    OK(MPI_Barrier(pair));
    poll_by_fences(fenced, stop);
    OK(MPI_Win_free(&fenced));
    OK(MPI_Comm_free(&pair));
}

int main(int argc, char **argv)
{
    MPI_Group world;
    start_polling(&argc, &argv);
    int other_rank = 1 - rank;
    POLL_BY_EACH(in_lock_all, 2, 1);
    POLL_BY_EACH(locking, 2, 0);
    POLL_BY_EACH(loading_in_lock_all, 1, 1);
    POLL_BY_EACH(loading, 1, 0);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    if (rank < 2)
        OK(MPI_Group_incl(world, 1, &other_rank, &other));
    poll_by_test();
    if (rank < 2)
        OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&world));
    if (size > 2)
        poll_on_another_window();
    return end_polling();
}
