/* The clock, series of runs, and the line that a point prints. */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A batch takes this time at least: the clock takes about a thousandth of it. */
static const double BATCH_NS = 20000;
enum { BATCH_MAX = 1 << 16, RUNS_MIN = 3 };

static long calls;
static double clock_ns = -1;

double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The least time between two readings of the clock, which a run of one call contains. */
double clock_costs(void) {
    double least = 1e9;
    for (int k = 0; k < 1000 && clock_ns < 0; k++) {
        double start = now_ns(), passed = now_ns() - start;
        if (passed < least) least = passed;
    }
    if (clock_ns < 0) clock_ns = least;
    return clock_ns;
}

long calls_made(void) { return calls; }

long runs_max_of(void) { return job.runs_max < RUNS_MAX ? job.runs_max : RUNS_MAX; }

static int is_within_budget(long runs, double begin) {
    if (runs >= runs_max_of()) return 0;
    return runs < RUNS_MIN || now_ns() - begin < job.seconds_max * 1e9;
}

int goes_on(long runs, double begin) {
    int go = is_within_budget(runs, begin);
    MPI_Bcast(&go, 1, MPI_INT, 0, job.comm);
    MPI_Barrier(job.comm);
    return go;
}

/* The time of a batch of calls on this rank. */
static double run(const Timed *timed, long value, long batch) {
    if (timed->before) timed->before(value);
    double start = now_ns();
    for (long k = 0; k < batch; k++) timed->call(value);
    double passed = now_ns() - start - clock_costs();
    if (timed->after) timed->after(value);
    calls += batch;
    return passed > 0 ? passed : 0;
}

/* A batch that takes BATCH_NS. Its runs warm up, too. */
static long suitable_batch(const Timed *timed, long value) {
    long batch_max = timed->batch_max ? timed->batch_max : BATCH_MAX;
    for (long batch = 1;; batch *= 4) {
        if (batch > batch_max) batch = batch_max;
        double least = 1e18;
        for (int k = 0; k < 2 && least > BATCH_NS; k++) {
            if (timed->callers == ALL) MPI_Barrier(job.comm);
            double ns = run(timed, value, batch);
            if (timed->callers == ALL)
                MPI_Allreduce(MPI_IN_PLACE, &ns, 1, MPI_DOUBLE, MPI_MAX, job.comm);
            if (ns < least) least = ns;
            if (ns > job.seconds_max * 1e9 / RUNS_MIN) break;
        }
        if (least >= BATCH_NS || batch == batch_max) return batch;
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(Series *series) {
    qsort(series->values, (size_t)series->runs, sizeof *series->values, ascending);
}

void combine_series(Series *series) {
    MPI_Allreduce(MPI_IN_PLACE, series->values, (int)series->runs, MPI_DOUBLE, MPI_MAX,
                  job.comm);
    sort(series);
}

void time_series(const Timed *timed, long value, Series *series) {
    long operations = timed->operations ? timed->operations : 1;
    calls = 0;
    series->runs = 0;
    MPI_Barrier(job.comm);
    if (timed->callers == ALL || is_origin()) {
        series->batch = suitable_batch(timed, value);
        double begin = now_ns();
        while (timed->callers == ALL ? goes_on(series->runs, begin)
                                     : is_within_budget(series->runs, begin)) {
            double ns = run(timed, value, series->batch);
            series->values[series->runs++] = ns / (double)(series->batch * operations);
        }
    }
    if (timed->callers == ALL) combine_series(series);
    else sort(series);
    /* The other ranks wait here, inside of MPI, while rank 0 is the origin. */
    MPI_Bcast(&calls, 1, MPI_LONG, 0, job.comm);
}

double median_of(const Series *series) { return series->values[series->runs / 2]; }

/* Prints the pairs that every point has, without the end of the line. */
static void report_values(const char *unit, const char *name, const char *parameter, long value,
                          const Series *series, int is_verified) {
    int all_verified;
    MPI_Allreduce(&is_verified, &all_verified, 1, MPI_INT, MPI_LAND, job.comm);
    job.all_verified &= all_verified;
    if (!is_origin()) return;
    printf("measurement=%s ranks=%d nodes=%s window=%s parameter=%s value=%ld ", name, job.ranks,
           job.is_one_node ? "one" : "several", job.has_window ? job.window : "none", parameter,
           value);
    printf("median_%s=%.2f least_%s=%.2f p90_%s=%.2f runs=%ld batch=%ld verified=%d", unit,
           median_of(series), unit, series->values[0], unit,
           series->values[series->runs * 9 / 10], series->runs, series->batch, all_verified);
}

void report_in(const char *unit, const char *name, const char *parameter, long value,
               const Series *series, int is_verified) {
    report_values(unit, name, parameter, value, series, is_verified);
    if (is_origin()) printf("\n");
    fflush(stdout);
}

void report(const char *name, const char *parameter, long value, const Series *series,
            int is_verified) {
    report_in("ns", name, parameter, value, series, is_verified);
}

void report_more(const char *name, const char *parameter, long value, const Series *series,
                 int is_verified, const char *more, ...) {
    va_list pairs;
    report_values("ns", name, parameter, value, series, is_verified);
    va_start(pairs, more);
    if (is_origin()) {
        printf(" ");
        vprintf(more, pairs);
        printf("\n");
    }
    va_end(pairs);
    fflush(stdout);
}

void fill(char *memory, size_t bytes, long seed) {
    for (size_t at = 0; at < bytes; at++) memory[at] = pattern(at, seed);
}

int has(int is_asked, const char *memory, size_t bytes, long seed) {
    for (size_t at = 0; is_asked && at < bytes; at++)
        if (memory[at] != pattern(at, seed)) return 0;
    return 1;
}
