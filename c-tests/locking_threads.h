// Threads that add to a window under locks, for programs whose MPI permits threads from a session on.
#ifndef LOCKING_THREADS_H
#define LOCKING_THREADS_H

#include "nodes.h"
#include "threads.h"

static struct {
    MPI_Win win;
    int failed, rounds;
} locking;

// Each thread locks a target of its own, so that no target is locked twice by one process.
UNUSED static void *lock_and_add(void *argument)
{
    const int target = *(int *)argument;
    const int64_t one = 1;
    for (int round = 0; round < locking.rounds; round++) {
        const int type = round % 4 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
        const int codes[] = {
            MPI_Win_lock(type, target, 0, locking.win),
            MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, locking.win),
            MPI_Win_unlock(target, locking.win),
        };
        for (int call = 0; call < 3; call++)
            if (codes[call] != MPI_SUCCESS)
                __atomic_store_n(&locking.failed, codes[call], __ATOMIC_RELAXED);
    }
    return NULL;
}

// As many threads of each rank of `comm` as it has ranks add to the words at `base`.
UNUSED static void threads_add(MPI_Comm comm, MPI_Win win, int64_t *base)
{
    locking.win = win;
    locking.rounds = ranks_per_node() > 0 ? 2000 : 20000; // between nodes a lock is a round trip
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    *base = 0;
    OK(MPI_Barrier(comm));
    run_numbered_threads(size, lock_and_add);
    OK(locking.failed);
    OK(MPI_Barrier(comm));
    CHECK_EQ(*base, size * locking.rounds);
}

#endif
