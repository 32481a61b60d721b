/* Runs calls on a rank of another node N and 11 N times each between two dumps of callgrind, as
 * counts.c does on one rank, for scripts/dev/counts. Each of the two ranks dumps what it has counted:
 * rank 0 as the origin, with a flush for each thousand calls, and rank 1 as the target, which sleeps
 * meanwhile, so only its service thread counts. Needs FOMPI_NET=tcp and FOMPI_RANKS_PER_NODE=1.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "../include/fompi_notify.h"
#include "counts_wakes.h"

#pragma weak FOMPI_Win_set_num_notify
#pragma weak FOMPI_Put_notify

enum { MANY = 1000, ORIGIN = 0, TARGET = 1 };
static MPI_Win win;
static int64_t one = 1;
static int rank, other; /* the process of the other rank */

static void put(int i) { MPI_Put(&one, 1, MPI_INT64_T, TARGET, 8 * i, 1, MPI_INT64_T, win); }
static void sum(int i) {
    MPI_Accumulate(&one, 1, MPI_INT64_T, TARGET, 8 * i, 1, MPI_INT64_T, MPI_SUM, win);
}

static void put_notify(int i) {
    FOMPI_Put_notify(&one, 1, MPI_INT64_T, TARGET, 8 * i, 1, MPI_INT64_T, 0, win);
}

static const struct {
    const char *name;
    void (*call)(int);
} calls[] = {{"put8_tcp", put}, {"sum8_tcp", sum}, {"put8_notify_tcp", put_notify}};

static void operate(void (*call)(int), long n) {
    for (long done = 0; done < n; done += MANY) {
        for (int i = 0; i < MANY; i++) call(i);
        MPI_Win_flush(TARGET, win);
    }
}

/* Calls that are not counted; the target sleeps meanwhile, too. */
static void warm_up(void (*call)(int)) {
    if (rank == ORIGIN) {
        operate(call, MANY);
        kill(other, SIGUSR1);
    } else {
        wait_for_other();
    }
}

/* n calls, dumped by each rank under "name_rank n". */
static void count(const char *name, void (*call)(int), long n) {
    char label[64];
    snprintf(label, sizeof label, "%s_%s %ld", name, rank == ORIGIN ? "origin" : "target", n);
    MPI_Barrier(MPI_COMM_WORLD);
    CALLGRIND_ZERO_STATS;
    if (rank == TARGET) {
        kill(other, SIGUSR1);
        wait_for_other();
        CALLGRIND_DUMP_STATS_AT(label);
    } else {
        wait_for_other();
        operate(call, n);
        CALLGRIND_DUMP_STATS_AT(label);
        kill(other, SIGUSR1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : MANY;
    int own = getpid();
    char *base;
    block_wakes();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv(&own, 1, MPI_INT, 1 - rank, 0, &other, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_allocate(8 * MANY, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 1);
    memset(base, 0, 8 * MANY);
    MPI_Win_lock_all(0, win);
    CALLGRIND_START_INSTRUMENTATION;
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        warm_up(calls[k].call);
        count(calls[k].name, calls[k].call, n);
        count(calls[k].name, calls[k].call, 11 * n);
    }
    CALLGRIND_STOP_INSTRUMENTATION;
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
