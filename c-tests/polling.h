// For programs in which rank 0 polls its window, with messages to and from rank 1 under way, until
// rank 1 is done with both and sets the flag. The first one is large, and rank 1 sends the other one
// in synchronous mode, so that every MPI needs progress of rank 0.

#ifndef POLLING_H
#define POLLING_H

#include "check.h"

enum { BYTES = 4 << 20, TAG = 1 };

// Calls that rank 0 repeats. Some leave the flag that they read at `target` in `flag`, others are
// in addition to a load of the own flag.
typedef void (*Poll)(int target);

static char *message;
static int answer;
static MPI_Win win;
static volatile long *flags;
static long flag;
UNUSED static long zero;

static void start_polling(int *argc, char ***argv)
{
    check_start(argc, argv);
    message = calloc(BYTES, 1);
    flags = window_of(8 * sizeof(long), sizeof(long), &win);
}

static int end_polling(void)
{
    OK(MPI_Win_free(&win));
    free(message);
    return check_end();
}

UNUSED static void load(void) { flag = flags[0]; }

// Rank 0 begins its half of the messages.
static void start_messages(MPI_Request requests[2])
{
    OK(MPI_Irecv(&answer, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(message, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[1]));
}

static void end_messages(MPI_Request requests[2])
{
    for (int i = 0; i < 2; i++)
        OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
}

// Rank 1 blocks in its half.
static void finish_messages(void)
{
    OK(MPI_Recv(message, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Ssend(&answer, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD));
}

static void finish_and_set(int target, long value)
{
    finish_messages();
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_REPLACE, win));
    OK(MPI_Win_unlock(target, win));
}

UNUSED static void poll_by(Poll calls, int target, int locks_all)
{
    static long value;
    MPI_Request requests[2];
    value++;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1)
        finish_and_set(target, value);
    if (rank != 0)
        return;
    start_messages(requests);
    if (locks_all)
        OK(MPI_Win_lock_all(0, win));
    do
        calls(target);
    while (flag != value);
    if (locks_all)
        OK(MPI_Win_unlock_all(win));
    end_messages(requests);
}

// Polls by each call of an array the flags of the first `targets` ranks.
#define POLL_BY_EACH(calls, targets, locks_all) do { \
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) \
        for (int target = 0; target < targets; target++) \
            poll_by(calls[i], target, locks_all); \
} while (0)

#endif
