/* Runs calls on a window over memory of the heap of another process, which the system copies, N and
 * 11 N times each between two dumps of callgrind, as counts.c does on one rank, for scripts/dev/counts.
 * Each call comes after a small put and its flush: then it may take no more instructions than on an
 * allocated window. Rank 0 counts, and rank 1 sleeps. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { TARGET = 1 };
#include "counts_calls.h"
#include "counts_wakes.h"

static int64_t one = 1;

static void put_flush(void) {
    MPI_Put(&one, 1, MPI_INT64_T, TARGET, 8, 1, MPI_INT64_T, win);
    MPI_Win_flush(TARGET, win);
}

static const struct {
    const char *name;
    void (*call)(void);
    int locked; /* called inside of lock_all */
} calls[] = {
    {"flush", flush, 1},
    {"flush_all", flush_all, 1},
    {"sync", synchronize, 1},
    {"lock_unlock_exclusive", lock_exclusive, 0},
    {"lock_unlock_shared", lock_shared, 0},
    {"lock_unlock_all", lock_all, 0},
};

static void count_all(long n) {
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        MPI_Win_lock_all(0, win);
        put_flush();
        if (!calls[k].locked) MPI_Win_unlock_all(win);
        count_twice(calls[k].name, "_created", calls[k].call, n);
        if (calls[k].locked) MPI_Win_unlock_all(win);
    }
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1000;
    int rank, process = getpid();
    char *base;
    block_wakes();
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
