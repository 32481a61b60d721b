/* Calls of passive target epochs that are counted on several kinds of memory, and the count of a call.
 * Included after TARGET, the rank that they are made to. */
#include <mpi.h>
#include <stdio.h>
#include <valgrind/callgrind.h>

static MPI_Win win;

static void flush(void) { MPI_Win_flush(TARGET, win); }
static void flush_all(void) { MPI_Win_flush_all(win); }
static void synchronize(void) { MPI_Win_sync(win); }
static void lock_exclusive(void) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win);
    MPI_Win_unlock(TARGET, win);
}
static void lock_shared(void) {
    MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, win);
    MPI_Win_unlock(TARGET, win);
}
static void lock_all(void) {
    MPI_Win_lock_all(0, win);
    MPI_Win_unlock_all(win);
}

/* n calls, dumped under the name with the kind of memory, and n. */
static void count(const char *name, const char *memory, void (*call)(void), long n) {
    char label[64];
    snprintf(label, sizeof label, "%s%s %ld", name, memory, n);
    CALLGRIND_ZERO_STATS;
    for (long i = 0; i < n; i++) call();
    CALLGRIND_DUMP_STATS_AT(label);
}

/* A call after enough of them for an exclusive lock to leave its intent standing. */
static void count_twice(const char *name, const char *memory, void (*call)(void), long n) {
    for (int i = 0; i < 100; i++) call();
    count(name, memory, call, n);
    count(name, memory, call, 11 * n);
}
