/* What an operation and its flush cost while the target computes and makes no call of MPI. */
#include "bench.h"

#define MILLISECONDS "50"
/* The target computes by then. */
static const double LEAD_NS = 5e6;

static Series series;
static long done;

static void put(long value) {
    (void)value;
    MPI_Put(local, 8, MPI_BYTE, job.target, wide_at(job.target, 0), 8, MPI_BYTE, wide.win);
}
static void get(long value) {
    (void)value;
    MPI_Get(fetched, 8, MPI_BYTE, job.target, wide_at(job.target, 8), 8, MPI_BYTE, wide.win);
}
static void fetch_and_add(long value) {
    static const int64_t one = 1;
    (void)value;
    MPI_Fetch_and_op(&one, fetched, MPI_INT64_T, job.target, wide_at(job.target, 16), MPI_SUM,
                     wide.win);
}

static void spin_until(double end) {
    while (now_ns() < end) continue;
}

static int verify(Call *call) {
    MPI_Barrier(job.comm);
    MPI_Win_sync(wide.win);
    if (call == put) return has(is_target(), wide.base, 8, 9);
    if (call == get) return has(is_origin(), fetched, 8, 10);
    return !is_origin() || *(int64_t *)fetched == done - 1;
}

static void point(const char *name, Call *call, long milliseconds) {
    fill(local, wide.bytes, 9);
    fill(wide.base + 8, 8, 10);
    *(int64_t *)(wide.base + 16) = 0;
    MPI_Win_sync(wide.win);
    double begin = now_ns();
    long runs = 0;
    for (done = 0; goes_on(runs, begin); runs++) {
        MPI_Barrier(job.comm);
        double start = now_ns();
        if (is_target()) spin_until(start + 1e6 * (double)milliseconds);
        if (is_origin()) spin_until(start + LEAD_NS);
        start = now_ns();
        if (is_origin()) {
            call(0);
            MPI_Win_flush(job.target, wide.win);
        }
        series.values[runs] = is_origin() ? now_ns() - start : 0;
        done++;
    }
    series.runs = runs;
    series.batch = 1;
    combine_series(&series);
    report(name, "milliseconds", milliseconds, &series, verify(call));
}
static void put_point(long milliseconds) { point("put_computing", put, milliseconds); }
static void get_point(long milliseconds) { point("get_computing", get, milliseconds); }
static void fop_point(long milliseconds) { point("fop_computing", fetch_and_add, milliseconds); }

#define ROW(name, what, call)                                                                    \
    {                                                                                            \
        name, "milliseconds", MILLISECONDS, what " while the target computes", IN_LOCK_ALL, 4096,   \
            2, {0}, NULL, NULL, call                                                             \
    }
const Measurement computings[] = {ROW("put_computing", "put of 8 bytes, flush", put_point),
                                  ROW("get_computing", "get of 8 bytes, flush", get_point),
                                  ROW("fop_computing", "fetch-and-op, flush", fop_point),
                                  {0}};
