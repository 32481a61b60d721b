/* Locks: alone, each call by itself, and all ranks at one target. */
#include "bench.h"

#include <string.h>

static Series series;

typedef enum { EXCLUSIVE, SHARED, EVERY, KINDS } Kind;

static void lock(Kind kind, int target, MPI_Win win) {
    if (kind == EVERY) MPI_Win_lock_all(0, win);
    else MPI_Win_lock(kind == SHARED ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
}
static void unlock(Kind kind, int target, MPI_Win win) {
    if (kind == EVERY) MPI_Win_unlock_all(win);
    else MPI_Win_unlock(target, win);
}

static void pair(Kind kind) {
    lock(kind, job.target, wide.win);
    unlock(kind, job.target, wide.win);
}
static void pair_exclusive(long value) { (void)value, pair(EXCLUSIVE); }
static void pair_shared(long value) { (void)value, pair(SHARED); }
static void pair_all(long value) { (void)value, pair(EVERY); }
/* What lock_all could be made of: a shared lock of every rank. */
static void each_shared(long value) {
    (void)value;
    for (int target = 0; target < job.ranks; target++) lock(SHARED, target, wide.win);
    for (int target = 0; target < job.ranks; target++) unlock(SHARED, target, wide.win);
}

/* Locks of all ranks held at a time, and bytes put to them in turns. */
enum { ROUNDS = 8 };
static void each_puts(long value) {
    (void)value;
    for (int target = 0; target < job.ranks; target++) lock(SHARED, target, wide.win);
    for (int round = 0; round < ROUNDS; round++)
        for (int target = 0; target < job.ranks; target++)
            MPI_Put(local, 1, MPI_BYTE, target, wide_at(target, 0), 1, MPI_BYTE, wide.win);
    for (int target = 0; target < job.ranks; target++) unlock(SHARED, target, wide.win);
}

static void put_byte(size_t offset) {
    MPI_Put(local + offset, 1, MPI_BYTE, job.target, wide_at(job.target, offset), 1, MPI_BYTE,
            wide.win);
}
static void locked_put(Kind kind) {
    lock(kind, job.target, wide.win);
    put_byte(0);
    unlock(kind, job.target, wide.win);
}
static void put_exclusive(long value) { (void)value, locked_put(EXCLUSIVE); }
static void put_shared(long value) { (void)value, locked_put(SHARED); }
static void put_all(long value) { (void)value, locked_put(EVERY); }

/* Every rank adds 1 to a number of the target in `TURNS` turns, by get and put under an exclusive
 * lock: no turn is lost if the lock excludes the others. */
enum { TURNS = 20, NUMBER_AT = 1024 };
static int verify_exclusion(long value) {
    (void)value;
    int64_t number = 0;
    MPI_Barrier(job.comm);
    lock(EXCLUSIVE, job.rank, wide.win);
    memcpy(wide.base + NUMBER_AT, &number, sizeof number);
    unlock(EXCLUSIVE, job.rank, wide.win);
    MPI_Barrier(job.comm);
    for (int turn = 0; turn < TURNS; turn++) {
        lock(EXCLUSIVE, job.target, wide.win);
        MPI_Get(&number, 8, MPI_BYTE, job.target, wide_at(job.target, NUMBER_AT), 8, MPI_BYTE,
                wide.win);
        MPI_Win_flush(job.target, wide.win);
        number++;
        MPI_Put(&number, 8, MPI_BYTE, job.target, wide_at(job.target, NUMBER_AT), 8, MPI_BYTE,
                wide.win);
        unlock(EXCLUSIVE, job.target, wide.win);
    }
    MPI_Barrier(job.comm);
    lock(EXCLUSIVE, job.rank, wide.win);
    memcpy(&number, wide.base + NUMBER_AT, sizeof number);
    unlock(EXCLUSIVE, job.rank, wide.win);
    return !is_target() || number == (int64_t)TURNS * job.ranks;
}

/* A put under each kind of lock arrives. */
static int verify_put(long value) {
    for (Kind kind = EXCLUSIVE; kind < KINDS; kind++) {
        local[0] = (char)(kind + 1);
        if (is_origin()) locked_put(kind);
        MPI_Barrier(job.comm);
        lock(EXCLUSIVE, job.rank, wide.win);
        int is_there = wide.base[0] == (char)(kind + 1);
        unlock(EXCLUSIVE, job.rank, wide.win);
        if (is_target() && !is_there) return 0;
        MPI_Barrier(job.comm);
    }
    return verify_exclusion(value);
}

/* Rank 0 locks all small windows in a row, then unlocks them. */
static void calls_point(long value) {
    static const char *const names[KINDS][2] = {{"lock_exclusive", "unlock_exclusive"},
                                                {"lock_shared", "unlock_shared"},
                                                {"lock_all", "unlock_all"}};
    static Series unlocks;
    for (Kind kind = EXCLUSIVE; kind < KINDS; kind++) {
        double begin = now_ns();
        long runs = 0;
        for (; goes_on(runs, begin); runs++) {
            double times[3] = {0};
            times[0] = now_ns();
            for (int k = 0; k < WINDOWS && is_origin(); k++)
                lock(kind, job.target, windows[k].win);
            times[1] = now_ns();
            for (int k = 0; k < WINDOWS && is_origin(); k++)
                unlock(kind, job.target, windows[k].win);
            times[2] = now_ns();
            double clock = clock_costs();
            series.values[runs] = is_origin() ? (times[1] - times[0] - clock) / WINDOWS : 0;
            unlocks.values[runs] = is_origin() ? (times[2] - times[1] - clock) / WINDOWS : 0;
        }
        series.runs = unlocks.runs = runs;
        series.batch = unlocks.batch = WINDOWS;
        combine_series(&series);
        combine_series(&unlocks);
        int is_verified = verify_put(value);
        report(names[kind][0], "ranks", value, &series, is_verified);
        report(names[kind][1], "ranks", value, &unlocks, is_verified);
    }
}

/* All ranks lock the target at the same time, with some puts of a byte inside; each to a place of
 * its own. */
static void contended(long operations) {
    lock(EXCLUSIVE, job.target, wide.win);
    for (long k = 0; k < operations; k++) put_byte((size_t)job.rank);
    unlock(EXCLUSIVE, job.target, wide.win);
}
static void contended_shared(long operations) {
    lock(SHARED, job.target, wide.win);
    for (long k = 0; k < operations; k++) put_byte((size_t)job.rank);
    unlock(SHARED, job.target, wide.win);
}

/* Once in a job: the first put of rank 0 to another rank, which may have to connect to it. */
static void first_contact(long value) {
    MPI_Barrier(job.comm);
    double begin = now_ns();
    if (is_origin()) locked_put(SHARED);
    series.values[0] = is_origin() ? now_ns() - begin : 0;
    series.runs = series.batch = 1;
    combine_series(&series);
    report("first_contact", "ranks", value, &series, verify_put(value));
}

#define ROW(name, what, call, callers)                                                           \
    {                                                                                            \
        name, "ranks", NULL, what, NO_EPOCH, 65536, 2, {callers, call, NULL, NULL, 0, 1}, NULL,  \
            verify_put, NULL                                                                     \
    }
#define CONTENDED(name, what, call)                                                              \
    {                                                                                            \
        name, "operations", "0,1,16,256,4096,65536", what, NO_EPOCH, 65536, 2,                   \
            {ALL, call, NULL, NULL, 0, 1}, NULL, verify_exclusion, NULL                          \
    }

const Measurement locks[] = {
    ROW("lock_unlock_exclusive", "exclusive lock and unlock", pair_exclusive, ORIGIN),
    ROW("lock_unlock_shared", "shared lock and unlock", pair_shared, ORIGIN),
    ROW("lock_all_unlock_all", "lock_all and unlock_all", pair_all, ORIGIN),
    ROW("lock_each_shared", "a shared lock of each rank, then the unlocks", each_shared, ORIGIN),
    ROW("lock_each_puts", "a shared lock of each rank, 8 puts to each in turns, unlocks", each_puts,
        ORIGIN),
    ROW("lock_put_exclusive", "exclusive lock, put of a byte, unlock", put_exclusive, ORIGIN),
    ROW("lock_put_shared", "shared lock, put of a byte, unlock", put_shared, ORIGIN),
    ROW("lock_all_put", "lock_all, put of a byte, unlock_all", put_all, ORIGIN),
    {"first_contact", "ranks", NULL, "the first shared lock, put of a byte and unlock of a job",
     NO_EPOCH, 65536, 2, {0}, NULL, NULL, first_contact},
    {"lock_calls", "ranks", NULL, "lock and unlock of each kind, each by itself", SMALL_WINDOWS,
     65536, 2, {0}, NULL, NULL, calls_point},
    CONTENDED("lock_contended", "all ranks: exclusive lock of one target, puts of a byte, unlock",
              contended),
    CONTENDED("lock_contended_shared", "the same with shared locks", contended_shared),
    {0}};
