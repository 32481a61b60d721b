/* What one-sided calls of rank 0 cost under MPI_THREAD_MULTIPLE, by one thread and by several at once
 * on one window, in processor time. Each thread has words of its own in the window, on cache lines of their own.
 * rma_bench asks for MPI_THREAD_MULTIPLE if one of these is named. */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 16, LINE = 64, WARM_UP = 100 };

typedef void Operation(int64_t *mine, MPI_Aint at);

static void flush(void) { MPI_Win_flush(job.target, wide.win); }
static void put(int64_t *mine, MPI_Aint at) {
    mine[0]++;
    MPI_Put(mine, 8, MPI_BYTE, job.target, at, 8, MPI_BYTE, wide.win);
    flush();
}
static void get(int64_t *mine, MPI_Aint at) {
    MPI_Get(mine + 1, 8, MPI_BYTE, job.target, at, 8, MPI_BYTE, wide.win);
    flush();
    mine[0]++;
}
static void fetch_and_op(int64_t *mine, MPI_Aint at) {
    static int64_t one = 1;
    MPI_Fetch_and_op(&one, mine, MPI_INT64_T, job.target, at, MPI_SUM, wide.win);
    flush();
    mine[0]++;
}
static void flush_only(int64_t *mine, MPI_Aint at) {
    (void)at;
    flush();
    mine[0]++;
}
static void request(int64_t *mine, MPI_Aint at) {
    MPI_Request handle;
    mine[0]++;
    MPI_Rput(mine, 8, MPI_BYTE, job.target, at, 8, MPI_BYTE, wide.win, &handle);
    MPI_Wait(&handle, MPI_STATUS_IGNORE);
}

static Operation *operation;
static pthread_barrier_t together;

typedef struct {
    pthread_t thread;
    int number;
    long batch, calls, runs;
    double *values; /* of each run, of a call */
} Worker;

static int64_t *words(int number) { return (int64_t *)(local + (size_t)number * LINE); }

/* The time for which the thread runs: threads may be more than processors. */
static double thread_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double run(const Worker *worker) {
    MPI_Aint at = wide_at(job.target, (size_t)worker->number * LINE);
    double start = thread_ns();
    for (long k = 0; k < worker->batch; k++) operation(words(worker->number), at);
    return (thread_ns() - start) / (double)worker->batch;
}

static void *work(void *argument) {
    Worker *worker = argument;
    for (long k = 0; k < worker->runs; k++) {
        pthread_barrier_wait(&together);
        worker->values[k] = run(worker);
    }
    worker->calls += worker->runs * worker->batch;
    return NULL;
}

/* The mean processor time of a call, over all threads. */
static void measure(const char *name, long threads, Operation *call, int is_value) {
    static Series series;
    enum { RUNS = 50, BATCH = 20000 };
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    operation = call;
    memset(wide.base, 0, wide.bytes);
    memset(local, 0, wide.bytes);
    MPI_Win_sync(wide.win);
    MPI_Barrier(job.comm);
    series.runs = RUNS, series.batch = BATCH;
    if (is_origin()) {
        Worker workers[THREADS_MAX];
        memset(series.values, 0, RUNS * sizeof *series.values);
        pthread_barrier_init(&together, NULL, (unsigned)threads);
        for (int k = 0; k < threads; k++) {
            workers[k] = (Worker){.number = k, .batch = WARM_UP, .runs = RUNS};
            workers[k].values = malloc(RUNS * sizeof(double));
            run(&workers[k]);
            workers[k].calls = WARM_UP, workers[k].batch = BATCH;
        }
        for (int k = 0; k < threads; k++)
            pthread_create(&workers[k].thread, NULL, work, &workers[k]);
        for (int k = 0; k < threads; k++) {
            pthread_join(workers[k].thread, NULL);
            for (long r = 0; r < RUNS; r++)
                series.values[r] += workers[k].values[r] / (double)threads;
            free(workers[k].values);
        }
        pthread_barrier_destroy(&together);
        flush();
    }
    int is_verified = 1;
    int64_t expected = WARM_UP + (int64_t)RUNS * BATCH;
    MPI_Barrier(job.comm);
    MPI_Win_sync(wide.win);
    for (int k = 0; k < threads && is_value && is_target(); k++)
        is_verified &= *(int64_t *)(wide.base + (size_t)k * LINE) == expected;
    for (int k = 0; k < threads && is_origin() && !is_value; k++)
        is_verified &= words(k)[0] == expected;
    if (!is_origin()) memset(series.values, 0, RUNS * sizeof *series.values);
    combine_series(&series);
    report(name, "threads", threads, &series, is_verified);
}

#define POINT(name, call, is_value)                                                              \
    static void point_##name(long threads) { measure("threads_" #name, threads, call, is_value); }
POINT(put, put, 1)
POINT(get, get, 0)
POINT(fop_sum, fetch_and_op, 1)
POINT(flush, flush_only, 0)
POINT(rput_wait, request, 1)

#define ROW(name, what)                                                                          \
    {                                                                                            \
        "threads_" #name, "threads", "1,2,4", what, IN_LOCK_ALL, 65536, 2, {0}, NULL, NULL,      \
            point_##name                                                                         \
    }

const Measurement by_threads[] = {
    ROW(put, "put of 8 bytes and flush, by each thread of rank 0"),
    ROW(get, "get of 8 bytes and flush, by each thread"),
    ROW(fop_sum, "fetch-and-op on an integer of its own and flush, by each thread"),
    ROW(flush, "flush by each thread"),
    ROW(rput_wait, "put of 8 bytes with a request and wait, by each thread"),
    {0}};
