/* How much of a transfer goes on while its origin computes: the times of the transfer, of a
 * computation that takes a little longer, and of both with the computation inside. The origin computes
 * on one processor; all other threads of the job, of whichever layer, have a second one. */
#define _GNU_SOURCE
#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define SIZES "8,64,512,4096,32768,262144,2097152"
static const double LONGER = 1.1;

static Series series;
static volatile double sink;
static long steps;

/* Fixed work that begins with the last result, so that the processor does not do two of them at
 * once. No clock bounds it, so that a rank that shares its core is not taken for one that has
 * computed. */
static void compute(void) {
    double x = sink;
    for (long k = 0; k < steps; k++) x = x * 0.9999999 + 1e-9;
    sink = x;
}
static void computation(long value) { (void)value, compute(); }
/* The same on all ranks; only rank 0 has a result. */
static double median_ns(Callers callers, Call *call, long value) {
    const Timed timed = {callers, call, NULL, NULL, 0, 1};
    time_series(&timed, value, &series);
    return is_origin() ? median_of(&series) : 0;
}

static int is_computing;
static void between(void) {
    if (is_computing) compute();
}
static void put(long bytes) {
    MPI_Put(local, (int)bytes, MPI_BYTE, job.target, wide_at(job.target, 0), (int)bytes, MPI_BYTE,
            wide.win);
    between();
    MPI_Win_flush(job.target, wide.win);
}
static void get(long bytes) {
    MPI_Get(fetched, (int)bytes, MPI_BYTE, job.target, wide_at(job.target, 0), (int)bytes, MPI_BYTE,
            wide.win);
    between();
    MPI_Win_flush(job.target, wide.win);
}
/* The receiver waits in its call; its answer shows that the message has arrived. */
static void message(long bytes) {
    MPI_Request request;
    if (is_origin()) {
        MPI_Isend(local, (int)bytes, MPI_BYTE, job.target, 1, job.comm, &request);
        between();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, job.target, 2, job.comm, MPI_STATUS_IGNORE);
    } else if (is_target()) {
        MPI_Recv(fetched, (int)bytes, MPI_BYTE, 0, 1, job.comm, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 2, job.comm);
    }
}

enum { THREADS_MAX = 64 };
static struct {
    pid_t thread;
    cpu_set_t before;
} pinned[THREADS_MAX];
static int threads;

static int next_of(const cpu_set_t *set, int processor) {
    while (processor < CPU_SETSIZE && !CPU_ISSET(processor, set)) processor++;
    return processor;
}
/* Returns whether the thread runs there, or is over. */
static int pin_thread(pid_t thread, int processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (threads == THREADS_MAX) return 0;
    pinned[threads].thread = thread;
    if (sched_getaffinity(thread, sizeof one, &pinned[threads].before) != 0) return errno == ESRCH;
    if (sched_setaffinity(thread, sizeof one, &one) != 0) return errno == ESRCH;
    threads++;
    return 1;
}
/* Collective. Returns how many processors the job has then: 1 if not all threads are pinned, because
 * there is only one processor or the system refuses. */
static int pin(void) {
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    MPI_Allreduce(MPI_IN_PLACE, &all, sizeof all, MPI_BYTE, MPI_BOR, job.comm);
    int first = next_of(&all, 0), second = next_of(&all, first + 1);
    DIR *tasks = second < CPU_SETSIZE ? opendir("/proc/self/task") : NULL;
    int are_pinned = tasks != NULL;
    threads = 0;
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        pid_t thread = atoi(task->d_name);
        if (thread > 0)
            are_pinned &= pin_thread(thread, is_origin() && thread == getpid() ? first : second);
    }
    if (tasks) closedir(tasks);
    MPI_Allreduce(MPI_IN_PLACE, &are_pinned, 1, MPI_INT, MPI_LAND, job.comm);
    return are_pinned ? 2 : 1;
}
static void unpin(void) {
    for (int k = 0; k < threads; k++)
        sched_setaffinity(pinned[k].thread, sizeof pinned[k].before, &pinned[k].before);
    MPI_Barrier(job.comm);
}

static int verify(Call *call, long bytes) {
    MPI_Barrier(job.comm);
    MPI_Win_sync(wide.win);
    if (call == put) return has(is_target(), wide.base, (size_t)bytes, 9);
    if (call == get) return has(is_origin(), fetched, (size_t)bytes, 10);
    return has(is_target(), fetched, (size_t)bytes, 9);
}

static void point(const char *name, Callers callers, Call *call, long bytes) {
    fill(local, wide.bytes, 9);
    fill(wide.base, wide.bytes, 10);
    MPI_Win_sync(wide.win);
    is_computing = 0;
    /* The threads of a layer are there after its first transfers. */
    median_ns(callers, call, bytes);
    int processors = pin();
    double transfer = median_ns(callers, call, bytes);
    steps = 100000;
    double step = median_ns(ORIGIN, computation, 0) / (double)steps;
    steps = is_origin() ? (long)(LONGER * transfer / step) + 1 : 0;
    double alone = median_ns(ORIGIN, computation, 0);
    is_computing = 1;
    double both = median_ns(callers, call, bytes);
    unpin();
    double share = transfer > 0 ? (transfer + alone - both) / transfer : 0;
    report_more(name, "bytes", bytes, &series, verify(call, bytes),
                "transfer_ns=%.2f computation_ns=%.2f overlap=%.3f processors=%d", transfer, alone,
                share < 0 ? 0 : share > 1 ? 1 : share, processors);
}
static void put_point(long bytes) { point("put_overlap", ORIGIN, put, bytes); }
static void get_point(long bytes) { point("get_overlap", ORIGIN, get, bytes); }
static void message_point(long bytes) { point("send_overlap", ALL, message, bytes); }

#define ROW(name, what, call)                                                                    \
    {                                                                                            \
        name, "bytes", SIZES, what, IN_LOCK_ALL, (size_t)4 << 20, 2, {0}, NULL, NULL, call       \
    }
const Measurement overlaps[] = {
    ROW("put_overlap", "put, computation, flush", put_point),
    ROW("get_overlap", "get, computation, flush", get_point),
    ROW("send_overlap", "isend, computation, wait, empty answer", message_point),
    {0}};
