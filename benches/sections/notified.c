/* Notified operations of libfompi (fompi_notify.h): an operation and the wait for it at its target,
 * many before a flush, and the calls on counters. An MPI alone has no such functions, so they are
 * looked up at run time; without them, or on a window of the host MPI, no point is printed. */
#define _GNU_SOURCE
#include "bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define SIZES_OF_INTEGERS                                                                        \
    "8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,524288,1048576"
#define WINDOW_BYTES (8 * MIB)
enum { COUNTER, COUNTERS, RATE = 1000, NOTIFICATIONS = 5 };

typedef int Move(const void *, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, int, MPI_Win);
typedef int MoveHere(void *, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, int, MPI_Win);
typedef int Accumulate(const void *, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Op,
                       int, MPI_Win);
typedef int GetAccumulate(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Aint,
                          int, MPI_Datatype, MPI_Op, int, MPI_Win);
static Move *put_notify;
static MoveHere *get_notify;
static Accumulate *accumulate_notify;
static GetAccumulate *get_accumulate_notify;
static int (*set_num)(MPI_Win, MPI_Info, int), (*get_num)(MPI_Win, int, int *);
static int (*get_value)(MPI_Win, int, MPI_Count *), (*reset_value)(MPI_Win, int, MPI_Count *);
static int (*wait_notify)(MPI_Win, int, MPI_Count);
static int (*wait_any)(MPI_Win, int, int, MPI_Count, int *);
static int (*notify_request)(MPI_Win, int, MPI_Count, MPI_Request *);

/* Whether the process has these functions. */
static int find(void) {
    static const struct {
        const char *name;
        void *function;
    } calls[] = {{"FOMPI_Put_notify", &put_notify},
                 {"FOMPI_Get_notify", &get_notify},
                 {"FOMPI_Accumulate_notify", &accumulate_notify},
                 {"FOMPI_Get_accumulate_notify", &get_accumulate_notify},
                 {"FOMPI_Win_set_num_notify", &set_num},
                 {"FOMPI_Win_get_num_notify", &get_num},
                 {"FOMPI_Win_get_notify_value", &get_value},
                 {"FOMPI_Win_reset_notify_value", &reset_value},
                 {"FOMPI_Win_wait_notify", &wait_notify},
                 {"FOMPI_Win_wait_any_notify", &wait_any},
                 {"FOMPI_Win_notify_request", &notify_request}};
    for (size_t k = 0; k < COUNT(calls); k++)
        if (!(*(void **)calls[k].function = dlsym(RTLD_DEFAULT, calls[k].name))) return 0;
    return 1;
}

/* Gives each rank its counters; 0 without notified operations. Collective. */
static int open_counters(void) {
    if (!find()) return 0;
    MPI_Win_set_errhandler(wide.win, MPI_ERRORS_RETURN);
    int answer = set_num(wide.win, MPI_INFO_NULL, COUNTERS);
    MPI_Win_set_errhandler(wide.win, MPI_ERRORS_ARE_FATAL);
    return answer == MPI_SUCCESS;
}

static void flush(void) { MPI_Win_flush(peer_rank(), wide.win); }
static int is_of_pair(void) { return is_origin() || is_target(); }
static int integers(long bytes) { return (int)(bytes / (long)sizeof(int64_t)); }
static MPI_Count value_now(void) {
    MPI_Count value = -1;
    get_value(wide.win, COUNTER, &value);
    return value;
}

static MPI_Count threshold;
static void await(void) { wait_notify(wide.win, COUNTER, ++threshold); }
static void ping_pong(Call *send, long bytes) {
    if (is_origin()) send(bytes), await();
    else if (is_target()) await(), send(bytes);
}

static void put_at(size_t at, long bytes) {
    put_notify(local + at, (int)bytes, MPI_BYTE, peer_rank(), wide_at(peer_rank(), at), (int)bytes,
               MPI_BYTE, COUNTER, wide.win);
}
static void put(long bytes) { put_at(0, bytes); }
static void get(long bytes) {
    get_notify(fetched, (int)bytes, MPI_BYTE, peer_rank(), wide_at(peer_rank(), 0), (int)bytes,
               MPI_BYTE, COUNTER, wide.win);
}
static void add(long bytes) {
    accumulate_notify(local, integers(bytes), MPI_INT64_T, peer_rank(), wide_at(peer_rank(), 0),
                      integers(bytes), MPI_INT64_T, MPI_SUM, COUNTER, wide.win);
}
static void get_and_add(long bytes) {
    int count = integers(bytes);
    get_accumulate_notify(local, count, MPI_INT64_T, fetched, count, MPI_INT64_T, peer_rank(),
                          wide_at(peer_rank(), 0), count, MPI_INT64_T, MPI_SUM, COUNTER, wide.win);
}
static void puts_and_waits(long bytes) { ping_pong(put, bytes); }
static void gets_and_waits(long bytes) { ping_pong(get, bytes); }
static void adds_and_waits(long bytes) { ping_pong(add, bytes); }
static void gets_adds_and_waits(long bytes) { ping_pong(get_and_add, bytes); }

/* In the places that `put_rate` has. */
static size_t place(long index, long bytes) {
    return (size_t)(index % ((long)WINDOW_BYTES / bytes)) * (size_t)bytes;
}
static void put_many(long bytes) {
    for (int k = 0; k < RATE; k++) put_at(place(k, bytes), bytes);
    flush();
}

static void prepare_bytes(long bytes) {
    (void)bytes;
    fill(local, WINDOW_BYTES, job.rank);
    fill(wide.base, WINDOW_BYTES, -1);
    MPI_Win_sync(wide.win);
}
static void prepare_integers(long bytes) {
    memset(wide.base, 0, WINDOW_BYTES);
    for (int k = 0; k < integers(bytes); k++) ((int64_t *)local)[k] = 1 + k % 7;
    MPI_Win_sync(wide.win);
}
/* Once more, with data that no run before has brought: they are there after the wait alone. */
static int verify_put(long bytes) {
    flush();
    MPI_Barrier(job.comm);
    fill(local, (size_t)bytes, job.rank + 100);
    puts_and_waits(bytes);
    MPI_Win_sync(wide.win);
    return has(is_of_pair(), wide.base, (size_t)bytes, peer_rank() + 100) &&
           (!is_of_pair() || wide.base[bytes] == pattern((size_t)bytes, -1));
}
/* Once more, from memory that its rank changes as soon as it is notified. */
static int verify_get(long bytes) {
    flush();
    fill(wide.base, (size_t)bytes, job.rank + 100);
    fill(fetched, (size_t)bytes, -1);
    MPI_Win_sync(wide.win);
    MPI_Barrier(job.comm);
    if (is_origin()) get(bytes);
    if (is_of_pair()) await(), fill(wide.base, (size_t)bytes, -2);
    if (is_target()) get(bytes);
    flush();
    return has(is_of_pair(), fetched, (size_t)bytes, peer_rank() + 100);
}
/* Each of the pair has had the peer's sums as often as it was called. */
static int has_sums(const char *memory, long bytes, long times) {
    const int64_t *sums = (const int64_t *)memory;
    for (int k = 0; k < integers(bytes); k++)
        if (sums[k] != (1 + k % 7) * times) return 0;
    return 1;
}
static int verify_add(long bytes) {
    MPI_Win_sync(wide.win);
    return !is_of_pair() || (has_sums(wide.base, bytes, calls_made()) &&
                             ((int64_t *)wide.base)[integers(bytes)] == 0);
}
static int verify_get_and_add(long bytes) {
    flush();
    return verify_add(bytes) && (!is_of_pair() || has_sums(fetched, bytes, calls_made() - 1));
}
static int verify_put_many(long bytes) {
    size_t total = (size_t)bytes * RATE, fits = WINDOW_BYTES / (size_t)bytes * (size_t)bytes;
    MPI_Win_sync(wide.win);
    return !is_target() || (has(1, wide.base, total < fits ? total : fits, 0) &&
                            value_now() == calls_made() * RATE);
}

typedef struct {
    const char *name;
    Timed timed;
    Call *prepare;
    int (*verify)(long bytes);
    long unit; /* the sizes are multiples of it */
} Work;

static void point(long bytes, const Work *work) {
    static Series series;
    if (bytes % work->unit || bytes == 0 || !open_counters()) return;
    MPI_Win_lock_all(0, wide.win);
    threshold = 0;
    work->prepare(bytes);
    MPI_Barrier(job.comm);
    time_series(&work->timed, bytes, &series);
    report(work->name, "bytes", bytes, &series, work->verify(bytes));
    MPI_Win_unlock_all(wide.win);
}

#define POINT(name, callers, call, operations, prepare, verify, unit)                            \
    static void name##_point(long bytes) {                                                       \
        static const Work work = {#name, {callers, call, NULL, NULL, 0, operations},             \
                                  prepare, verify, unit};                                        \
        point(bytes, &work);                                                                     \
    }
POINT(notified_put, ALL, puts_and_waits, 2, prepare_bytes, verify_put, 1)
POINT(notified_get, ALL, gets_and_waits, 2, prepare_bytes, verify_get, 1)
POINT(notified_acc, ALL, adds_and_waits, 2, prepare_integers, verify_add, 8)
POINT(notified_get_acc, ALL, gets_adds_and_waits, 2, prepare_integers, verify_get_and_add, 8)
POINT(notified_put_rate, ORIGIN, put_many, RATE, prepare_bytes, verify_put_many, 1)

/* The calls on counters of the origin, which its target has notified before. */
static int found_index;
static MPI_Count value, resets;
static void get_a_value(long ranks) { (void)ranks, get_value(wide.win, COUNTER, &value); }
static void wait_for_one(long ranks) { (void)ranks, wait_notify(wide.win, COUNTER, NOTIFICATIONS); }
static void wait_for_any(long ranks) {
    (void)ranks, wait_any(wide.win, COUNTER, COUNTERS, NOTIFICATIONS, &found_index);
}
static void wait_by_request(long ranks) {
    MPI_Request request;
    (void)ranks, notify_request(wide.win, COUNTER, NOTIFICATIONS, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void reset(long ranks) {
    MPI_Count before;
    (void)ranks, reset_value(wide.win, COUNTER, &before);
    resets += before;
}
/* One more than before, which shows that the call was made. */
static void set_more(long ranks) { (void)ranks, set_num(wide.win, MPI_INFO_NULL, COUNTERS + 1); }

static int has_all(void) { return value == NOTIFICATIONS && value_now() == NOTIFICATIONS; }
static int has_found(void) { return found_index == COUNTER && value_now() == NOTIFICATIONS; }
static int has_waited(void) { return value_now() == NOTIFICATIONS; }
static int has_reset(void) { return resets == NOTIFICATIONS && value_now() == 0; }

static void calls_point(long ranks) {
    static Series series;
    static const struct {
        const char *name;
        Timed timed;
        int (*is_right)(void);
    } calls[] = {{"get_notify_value", {ORIGIN, get_a_value, NULL, NULL, 0, 1}, has_all},
                 {"wait_notify", {ORIGIN, wait_for_one, NULL, NULL, 0, 1}, has_waited},
                 {"wait_any_notify", {ORIGIN, wait_for_any, NULL, NULL, 0, 1}, has_found},
                 {"notify_request", {ORIGIN, wait_by_request, NULL, NULL, 0, 1}, has_waited},
                 {"reset_notify_value", {ORIGIN, reset, NULL, NULL, 0, 1}, has_reset}};
    static const Timed set = {ALL, set_more, NULL, NULL, 0, 1};
    int counters = 0;
    if (!open_counters()) return;
    resets = 0, value = -1, found_index = -1;
    MPI_Win_lock_all(0, wide.win);
    for (int k = 0; k < NOTIFICATIONS && is_target(); k++) put(0);
    if (is_target()) flush();
    MPI_Barrier(job.comm);
    for (size_t k = 0; k < COUNT(calls); k++) {
        time_series(&calls[k].timed, ranks, &series);
        report(calls[k].name, "ranks", ranks, &series, !is_origin() || calls[k].is_right());
    }
    MPI_Win_unlock_all(wide.win);
    time_series(&set, ranks, &series);
    get_num(wide.win, job.target, &counters);
    report("set_num_notify", "ranks", ranks, &series, counters == COUNTERS + 1);
}

#define ROW(name, sizes, what)                                                                   \
    { #name, "bytes", sizes, what, NO_EPOCH, WINDOW_BYTES, 2, {0}, NULL, NULL, name##_point }
#define ONE_WAY(name, sizes, call) ROW(name, sizes, "half a round trip of " call " and wait_notify")

const Measurement notified[] = {
    ONE_WAY(notified_put, ALL_SIZES, "put_notify"),
    ONE_WAY(notified_get, ALL_SIZES, "get_notify"),
    ONE_WAY(notified_acc, SIZES_OF_INTEGERS, "accumulate_notify, sum of integers,"),
    ONE_WAY(notified_get_acc, SIZES_OF_INTEGERS, "get_accumulate_notify, sum of integers,"),
    ROW(notified_put_rate, RATE_SIZES, "one of 1,000 put_notify before a flush"),
    {"notify_calls", "ranks", NULL,
     "get_notify_value, wait_notify, wait_any_notify, notify_request and reset_notify_value of a "
     "counter that has its value, set_num_notify",
     NO_EPOCH, 4096, 2, {0}, NULL, NULL, calls_point},
    {0}};
