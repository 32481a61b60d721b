/* Runs calls on a window over memory of the heap of another process, which the system copies, N and
 * 11 N times each between two dumps of callgrind, as counts.c does on one rank, for scripts/dev/counts.
 * Each call comes behind a small put and its flush: then it may take no more instructions than on an
 * allocated window. Rank 0 counts, and rank 1 sleeps. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum { TARGET = 1 };
static MPI_Win win;
static int64_t one = 1;

static void put_flush(void) {
    MPI_Put(&one, 1, MPI_INT64_T, TARGET, 8, 1, MPI_INT64_T, win);
    MPI_Win_flush(TARGET, win);
}
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

static const struct {
    const char *name;
    void (*call)(void);
    int locked; /* called inside of lock_all */
} calls[] = {
    {"flush_created", flush, 1},
    {"flush_all_created", flush_all, 1},
    {"sync_created", synchronize, 1},
    {"lock_unlock_exclusive_created", lock_exclusive, 0},
    {"lock_unlock_shared_created", lock_shared, 0},
    {"lock_unlock_all_created", lock_all, 0},
};

/* n calls, dumped under "name n". */
static void count(const char *name, void (*call)(void), long n) {
    char label[64];
    snprintf(label, sizeof label, "%s %ld", name, n);
    CALLGRIND_ZERO_STATS;
    for (long i = 0; i < n; i++) call();
    CALLGRIND_DUMP_STATS_AT(label);
}

static void count_all(long n) {
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        MPI_Win_lock_all(0, win);
        put_flush();
        if (!calls[k].locked) MPI_Win_unlock_all(win);
        /* Enough for an exclusive lock to leave its intent standing. */
        for (int i = 0; i < 100; i++) calls[k].call();
        count(calls[k].name, calls[k].call, n);
        count(calls[k].name, calls[k].call, 11 * n);
        if (calls[k].locked) MPI_Win_unlock_all(win);
    }
}

static void wait_for_other(void) {
    sigset_t set;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigwait(&set, &got);
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1000;
    int rank, process = getpid();
    sigset_t set;
    char *base;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(&process, 1, MPI_INT, TARGET, MPI_COMM_WORLD);
    base = calloc(8192, 1);
    MPI_Win_create(base, 8192, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == TARGET) {
        wait_for_other();
    } else if (rank == 0) {
        CALLGRIND_START_INSTRUMENTATION;
        count_all(n);
        CALLGRIND_STOP_INSTRUMENTATION;
        kill(process, SIGUSR1);
    }
    MPI_Win_free(&win);
    free(base);
    MPI_Finalize();
    return 0;
}
