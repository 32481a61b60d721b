// As progress_while_polling.c, by calls that an MPI may carry out without making progress: requests
// that are complete when they are made, MPI_Win_sync, compare-and-swap, and windows of one rank.
// MPI-4.1 sections 2.9 and 3.7.4.
// ranks: 2

#include "polling.h"

static MPI_Win own;
static MPI_Group self;

static void rget_and_wait(int target)
{
    MPI_Request request;
    OK(MPI_Rget(&flag, 1, MPI_LONG, target, 0, 1, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void rget_accumulate_and_test(int target)
{
    MPI_Request request;
    int done = 0;
    OK(MPI_Rget_accumulate(&zero, 1, MPI_LONG, &flag, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM,
                           win, &request));
    while (!done)
        OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
}

static void compare_and_flush(int target)
{
    OK(MPI_Compare_and_swap(&zero, &zero, &flag, MPI_LONG, target, 0, win));
    OK(MPI_Win_flush(target, win));
}

static void rput_and_wait(int target)
{
    MPI_Request request;
    OK(MPI_Rput(&zero, 1, MPI_LONG, target, 1, 1, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    load();
}

static void raccumulate_and_wait(int target)
{
    MPI_Request request;
    OK(MPI_Raccumulate(&zero, 1, MPI_LONG, target, 1, 1, MPI_LONG, MPI_SUM, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    load();
}

static void sync_window(int target)
{
    (void)target;
    OK(MPI_Win_sync(win));
    load();
}

static void fence_alone(int target)
{
    (void)target;
    OK(MPI_Win_fence(0, own));
    load();
}

static void epochs_alone(int target)
{
    int done = 0;
    (void)target;
    OK(MPI_Win_post(self, 0, own));
    OK(MPI_Win_start(self, 0, own));
    OK(MPI_Win_complete(own));
    while (!done)
        OK(MPI_Win_test(own, &done));
    load();
}

static void windows_alone(int target)
{
    MPI_Win made;
    void *base;
    (void)target;
    OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &made));
    OK(MPI_Win_free(&made));
    load();
}

static void lock_unchecked(int target)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, MPI_MODE_NOCHECK, own));
    OK(MPI_Win_unlock(target, own));
    load();
}

static const Poll in_lock_all[] = {rget_and_wait, rget_accumulate_and_test, compare_and_flush};
static const Poll loading_in_lock_all[] = {rput_and_wait, raccumulate_and_wait, sync_window};
static const Poll loading[] = {fence_alone, epochs_alone, windows_alone, lock_unchecked};

int main(int argc, char **argv)
{
    void *base;
    start_polling(&argc, &argv);
    OK(MPI_Comm_group(MPI_COMM_SELF, &self));
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &own));
    POLL_BY_EACH(in_lock_all, 2, 1);
    POLL_BY_EACH(loading_in_lock_all, 1, 1);
    POLL_BY_EACH(loading, 1, 0);
    OK(MPI_Win_free(&own));
    OK(MPI_Group_free(&self));
    return end_polling();
}
