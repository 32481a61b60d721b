// Calls that a profiling library has to intercept once each.

#ifndef PROFILER_CALLS_H
#define PROFILER_CALLS_H

#include "check.h"

// `count` says how often the library has seen a function.
static void calls_seen_once(int (*count)(const char *))
{
    MPI_Win win;
    int value = 5 + rank, got = -1;
    int *base = window_of(64, sizeof(int), &win);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[0], 5 + previous_rank());
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Get(&got, 1, MPI_INT, next_rank(), 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(got, value);
    OK(MPI_Win_free(&win));
    CHECK_EQ(count("Win_allocate"), 1);
    CHECK_EQ(count("Win_fence"), 3);
    CHECK_EQ(count("Put"), 1);
    CHECK_EQ(count("Get"), 1);
    CHECK_EQ(count("Win_lock"), 1);
    CHECK_EQ(count("Win_unlock"), 1);
    CHECK_EQ(count("Win_free"), 1);
}

#endif
