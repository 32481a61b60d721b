/* How much of a transfer goes on while its origin computes: the times of the transfer, of a
 * computation that takes a little longer, and of both with the computation inside. */
#include "bench.h"

#include <stdlib.h>

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
    double transfer = median_ns(callers, call, bytes);
    steps = 100000;
    double step = median_ns(ORIGIN, computation, 0) / (double)steps;
    steps = is_origin() ? (long)(LONGER * transfer / step) + 1 : 0;
    double alone = median_ns(ORIGIN, computation, 0);
    is_computing = 1;
    double both = median_ns(callers, call, bytes);
    double share = transfer > 0 ? (transfer + alone - both) / transfer : 0;
    report_more(name, "bytes", bytes, &series, verify(call, bytes),
                "transfer_ns=%.2f computation_ns=%.2f overlap=%.3f", transfer, alone,
                share < 0 ? 0 : share > 1 ? 1 : share);
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
