/* What the parts of rma_bench and of the programs in benches/layers share: the job, windows, series
 * of runs, and rows of measurements.
 *
 * A row of a table (`Measurement`) names a measurement, its parameter and the call that is timed.
 * measure.c times it: a run is a batch of calls between two readings of the clock, and the batch is
 * so large that the clock does not matter. The time of a run in which all ranks call is the longest
 * one of all ranks. */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* The job and its options. Rank 0 is the origin of what one rank does alone; the last rank is the
 * target, which is on another node if there are several. */
typedef struct {
    MPI_Comm comm; /* of all that take part */
    int rank, ranks, target, is_one_node;
    const char *place; /* node, nodes or "": see group.c */
    long wanted;       /* ranks of the group; 0: all */
    long runs_max;
    double seconds_max; /* of one point */
    const char *window; /* allocate, create, alloc_mem or dynamic */
    int all_verified;
    int has_window; /* the current measurement has one of that kind */
} Job;
extern Job job;

static inline int is_origin(void) { return job.rank == 0; }
static inline int is_target(void) { return job.rank == job.target; }
/* The other rank of a ping-pong between origin and target. */
static inline int peer_rank(void) { return is_origin() ? job.target : 0; }

void group_begin(void);
int group_open(void);
void group_close(void);
void group_about(void);

/* A window in which every rank exposes `bytes` at `base`. */
typedef struct {
    MPI_Win win;
    char *base;
    size_t bytes;
    MPI_Aint *starts; /* displacement of the first byte of each rank: not 0 in dynamic windows */
} Window;

void window_open(Window *window, size_t bytes);
void window_close(Window *window);

/* The window of the current measurement, and 16 small ones for calls that cannot be repeated on one
 * window (a second post before the wait), so that they are timed in a batch, too. */
enum { WINDOWS = 16 };
extern Window wide, windows[WINDOWS];
static inline MPI_Aint wide_at(int rank, size_t offset) {
    return wide.starts[rank] + (MPI_Aint)offset;
}

/* Memory of the origin, as large as a part of `wide`. */
extern char *local, *fetched;

typedef void Call(long value);
typedef enum { ORIGIN, ALL } Callers;

/* What is timed. `before` and `after` are called around each run, outside of the timed part. */
typedef struct {
    Callers callers;
    Call *call, *before, *after;
    long batch_max;  /* 0: no limit */
    long operations; /* of one call, by which the time is divided; 0: one */
} Timed;

enum { RUNS_MAX = 100000 };
typedef struct {
    double values[RUNS_MAX]; /* of an operation, sorted */
    long runs, batch;
} Series;

/* Times it until the runs or the seconds of a point are over; collective. Only rank 0 has the
 * series then. */
void time_series(const Timed *timed, long value, Series *series);
/* The series of a rank that has taken its values itself: their maximum over the ranks, sorted. */
void combine_series(Series *series);
double median_of(const Series *series);
/* How often the call of the last series was called, warming up included; the same on all ranks. */
long calls_made(void);
double now_ns(void);
double clock_costs(void);
/* Collective. Rank 0 tells whether a loop of runs that began at `begin` goes on. */
int goes_on(long runs, double begin);
long runs_max_of(void);

/* Collective. Prints the line of a point in nanoseconds. */
void report(const char *name, const char *parameter, long value, const Series *series,
            int is_verified);
/* The same in another unit, which ends the names of its pairs. */
void report_in(const char *unit, const char *name, const char *parameter, long value,
               const Series *series, int is_verified);
/* In nanoseconds, with more pairs. */
void report_more(const char *name, const char *parameter, long value, const Series *series,
                 int is_verified, const char *more, ...) __attribute__((format(printf, 6, 7)));

typedef enum { NO_WINDOW, NO_EPOCH, IN_LOCK_ALL, IN_FENCES, SMALL_WINDOWS } Scope;

typedef struct Measurement {
    const char *name, *parameter;
    const char *values; /* of the parameter; NULL: the number of ranks */
    const char *what;
    Scope scope;
    size_t bytes; /* of each rank in the window `wide` */
    int ranks_min;
    Timed timed;
    Call *prepare; /* all ranks, before the runs; may be NULL */
    int (*verify)(long value);
    Call *point; /* measures and reports a point, instead of the above */
} Measurement;

/* What the command line asks for; returns the exit status. Each program defines its tables, which
 * end with NULL, and how it ends. */
int run_commands(int argc, char **argv);
extern const Measurement *const tables[];
_Noreturn void leave(int status);

/* The bytes of a transfer, and of one of a thousand transfers. */
#define ALL_SIZES                                                                                \
    "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,524288,"   \
    "1048576,2097152,4194304"
#define RATE_SIZES "1,2,4,8,16,32,64,128,256,512,1024,2048,4096"

/* The tables of rma_bench, each in a file of its own, which end with a row without a name. */
extern const Measurement transfers[], derived[], overlaps[], computings[], atomics[], epochs[],
    locks[], creation[], memories[], messages[], by_hand[], by_threads[], one_ways[], notified[],
    attributes[];

/* Memory that shows whether it was transferred: a byte for each place and each seed. */
static inline char pattern(size_t at, long seed) {
    return (char)(at * 7 + (at >> 8) * 3 + (size_t)seed * 31 + 1);
}
void fill(char *memory, size_t bytes, long seed);
/* Whether memory has the pattern; 1 on a rank that is not asked. */
int has(int is_asked, const char *memory, size_t bytes, long seed);

#define MIB ((size_t)1 << 20)
#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

#endif
