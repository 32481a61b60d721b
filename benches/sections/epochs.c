/* What it costs to complete and to synchronize: flush, sync, fence, and post, start, complete, wait
 * on a ring. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static Series series;
static const char one = 1;

/* Every rank puts a byte to another one, which it then finds in its window: place `from` of the
 * target's part holds what rank `from` has put there. */
static void put_byte(Window *window, int target) {
    MPI_Put(&one, 1, MPI_BYTE, target, window->starts[target] + job.rank, 1, MPI_BYTE, window->win);
}
static void clear(Window *window) {
    memset(window->base, 0, window->bytes);
    MPI_Barrier(job.comm);
}
static int next(void) { return (job.rank + 1) % job.ranks; }
static int previous(void) { return (job.rank + job.ranks - 1) % job.ranks; }

static void flush(long value) { (void)value, MPI_Win_flush(job.target, wide.win); }
static void flush_local(long value) { (void)value, MPI_Win_flush_local(job.target, wide.win); }
static void flush_all(long value) { (void)value, MPI_Win_flush_all(wide.win); }
static void flush_local_all(long value) { (void)value, MPI_Win_flush_local_all(wide.win); }
static void sync(long value) { (void)value, MPI_Win_sync(wide.win); }

static void puts_before(long count) {
    for (long k = 0; k < count; k++)
        MPI_Put(local + 8 * (k & 511), 8, MPI_BYTE, job.target,
                wide_at(job.target, 8 * (size_t)(k & 511)), 8, MPI_BYTE, wide.win);
}
static void prepare_pattern(long value) {
    (void)value;
    fill(local, wide.bytes, 5);
    memset(wide.base, 0, wide.bytes);
    MPI_Win_sync(wide.win);
}
static int verify_puts(long count) {
    MPI_Win_sync(wide.win);
    return has(is_target(), wide.base, 8 * (size_t)(count < 512 ? count : 512), 5);
}
/* A put that only this kind of flush completes, or that a sync lets the target see. */
static int verify_by(Call *call) {
    if (is_origin()) puts_before(512), call(0);
    if (is_origin() && (call == flush_local || call == flush_local_all || call == sync)) flush(0);
    MPI_Barrier(job.comm);
    return verify_puts(512);
}
static int verify_flush(long value) { return (void)value, verify_by(flush); }
static int verify_flush_local(long value) { return (void)value, verify_by(flush_local); }
static int verify_flush_all(long value) { return (void)value, verify_by(flush_all); }
static int verify_flush_local_all(long value) { return (void)value, verify_by(flush_local_all); }
static int verify_sync(long value) { return (void)value, verify_by(sync); }

static void fence(long value) { (void)value, MPI_Win_fence(0, wide.win); }
static void put_fence(long value) { put_byte(&wide, next()), fence(value); }
static int verify_fence(long value) {
    fence(value);
    clear(&wide);
    fence(value);
    put_fence(value);
    return wide.base[previous()] == one;
}

/* What a fence could be made of, under lock_all. */
static void flush_barrier(long value) {
    (void)value;
    MPI_Win_flush_all(wide.win);
    MPI_Win_sync(wide.win);
    MPI_Barrier(job.comm);
    MPI_Win_sync(wide.win);
}
static void put_flush_barrier(long value) { put_byte(&wide, next()), flush_barrier(value); }
static int verify_flush_barrier(long value) {
    clear(&wide);
    flush_barrier(value);
    put_flush_barrier(value);
    return wide.base[previous()] == one;
}

/* The k nearest ranks of the ring by turns on both sides: this rank has access to those at the
 * offsets +1, -1, +2, -2 ..., and is exposed to those at the opposite ones. */
static MPI_Group access, exposure;
static int *access_ranks;
static int ring_offset(long index) {
    int distance = (int)(index / 2) + 1;
    return index % 2 ? -distance : distance;
}
static int at_offset(int offset) { return (job.rank + offset + job.ranks) % job.ranks; }

static void open_groups(long neighbours) {
    MPI_Group world;
    int *exposure_ranks = malloc((size_t)neighbours * sizeof *exposure_ranks);
    access_ranks = malloc((size_t)neighbours * sizeof *access_ranks);
    for (long k = 0; k < neighbours; k++) {
        access_ranks[k] = at_offset(ring_offset(k));
        exposure_ranks[k] = at_offset(-ring_offset(k));
    }
    MPI_Comm_group(job.comm, &world);
    MPI_Group_incl(world, (int)neighbours, access_ranks, &access);
    MPI_Group_incl(world, (int)neighbours, exposure_ranks, &exposure);
    MPI_Group_free(&world);
    free(exposure_ranks);
}
static void close_groups(void) {
    MPI_Group_free(&access);
    MPI_Group_free(&exposure);
    free(access_ranks);
}

static void cycle(Window *window, long puts) {
    MPI_Win_post(exposure, 0, window->win);
    MPI_Win_start(access, 0, window->win);
    for (long k = 0; k < puts; k++) put_byte(window, access_ranks[k]);
    MPI_Win_complete(window->win);
    MPI_Win_wait(window->win);
}
static void pscw(long neighbours) { (void)neighbours, cycle(&windows[0], 0); }
static void pscw_put(long neighbours) { cycle(&windows[0], neighbours); }
static int verify_pscw(Window *window, long neighbours) {
    clear(window);
    cycle(window, neighbours);
    int seen = 1;
    for (long k = 0; k < neighbours; k++)
        seen &= window->base[at_offset(-ring_offset(k))] == one;
    return seen;
}

static void pscw_point(long neighbours) {
    static const Timed bare = {ALL, pscw, NULL, NULL, 0, 1}, with_puts = {ALL, pscw_put, NULL,
                                                                          NULL, 0, 1};
    if (neighbours >= job.ranks) return;
    open_groups(neighbours);
    time_series(&bare, neighbours, &series);
    report("pscw", "neighbours", neighbours, &series, verify_pscw(&windows[0], neighbours));
    time_series(&with_puts, neighbours, &series);
    report("pscw_put", "neighbours", neighbours, &series, verify_pscw(&windows[0], neighbours));
    close_groups();
}

/* Each of the four calls by itself, on all small windows in a row: start finds that all posts have
 * arrived, and wait that all completes have. */
typedef enum { POST, START, COMPLETE, WAIT, CALLS } PscwCall;

static void call_on_all(PscwCall which) {
    for (int k = 0; k < WINDOWS; k++) {
        MPI_Win win = windows[k].win;
        if (which == POST) MPI_Win_post(exposure, 0, win);
        if (which == START) MPI_Win_start(access, 0, win);
        if (which == COMPLETE) MPI_Win_complete(win);
        if (which == WAIT) MPI_Win_wait(win);
    }
}

static void pscw_calls_point(long neighbours) {
    static const char *const names[] = {"post", "start", "complete", "wait"};
    static Series calls[CALLS];
    if (neighbours >= job.ranks) return;
    open_groups(neighbours);
    int is_verified = verify_pscw(&windows[WINDOWS - 1], neighbours);
    double begin = now_ns();
    long runs = 0;
    for (; goes_on(runs, begin); runs++)
        for (PscwCall which = POST; which < CALLS; which++) {
            MPI_Barrier(job.comm);
            double start = now_ns();
            call_on_all(which);
            calls[which].values[runs] = (now_ns() - start - clock_costs()) / WINDOWS;
        }
    for (PscwCall which = POST; which < CALLS; which++) {
        calls[which].runs = runs;
        calls[which].batch = WINDOWS;
        combine_series(&calls[which]);
        report(names[which], "neighbours", neighbours, &calls[which], is_verified);
    }
    close_groups();
}

#define FLUSH(name, what, call)                                                                  \
    {                                                                                            \
        #name, "ranks", NULL, what, IN_LOCK_ALL, 4096, 2, {ORIGIN, call, NULL, NULL, 0, 1},      \
            prepare_pattern, verify_##name, NULL                                                 \
    }

const Measurement epochs[] = {
    FLUSH(flush, "flush with nothing to complete", flush),
    FLUSH(flush_local, "the same, flush_local", flush_local),
    FLUSH(flush_all, "the same, flush_all", flush_all),
    FLUSH(flush_local_all, "the same, flush_local_all", flush_local_all),
    {"flush_after", "operations", "1,10,100,1000", "flush after puts of 8 bytes, without these",
     IN_LOCK_ALL, 4096, 2, {ORIGIN, flush, puts_before, NULL, 1, 1}, prepare_pattern, verify_puts,
     NULL},
    FLUSH(sync, "sync", sync),
    {"fence", "ranks", NULL, "fence without transfers", IN_FENCES, 65536, 1,
     {ALL, fence, NULL, NULL, 0, 1}, NULL, verify_fence, NULL},
    {"put_fence", "ranks", NULL, "every rank puts a byte to the next one, fence", IN_FENCES, 65536,
     1, {ALL, put_fence, NULL, NULL, 0, 1}, NULL, verify_fence, NULL},
    {"flush_barrier", "ranks", NULL, "flush_all, sync, barrier, sync", IN_LOCK_ALL, 65536, 1,
     {ALL, flush_barrier, NULL, NULL, 0, 1}, NULL, verify_flush_barrier, NULL},
    {"put_flush_barrier", "ranks", NULL, "every rank puts a byte to the next one, and the same",
     IN_LOCK_ALL, 65536, 1, {ALL, put_flush_barrier, NULL, NULL, 0, 1}, NULL, verify_flush_barrier,
     NULL},
    {"pscw", "neighbours", "1,2,4,8,16,32",
     "post, start, complete, wait on a ring; also with a put of a byte to each (pscw_put)",
     SMALL_WINDOWS, 0, 2, {0}, NULL, NULL, pscw_point},
    {"pscw_calls", "neighbours", "1,2,4,8,16,32", "post, start, complete and wait, each by itself",
     SMALL_WINDOWS, 0, 2, {0}, NULL, NULL, pscw_calls_point},
    {0}};
