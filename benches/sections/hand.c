/* The same work by hand on memory that the ranks of a node share: loads, stores and the atomic
 * instructions of the processor. It shows what a layer adds. */
#include "bench.h"

#include <string.h>

static const size_t BYTES = (size_t)8 << 20;
static MPI_Win win;
static char *mine, *target, *peer;
static int64_t wanted, turn;

static void open_memory(void) {
    MPI_Aint bytes;
    int disp_unit;
    MPI_Win_allocate_shared((MPI_Aint)BYTES, 1, MPI_INFO_NULL, job.comm, &mine, &win);
    MPI_Win_shared_query(win, job.target, &bytes, &disp_unit, &target);
    MPI_Win_shared_query(win, peer_rank(), &bytes, &disp_unit, &peer);
}

static int64_t *word(long index) { return (int64_t *)target + index; }
static void complete(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static void put(long bytes) { memcpy(target, local, (size_t)bytes), complete(); }
static void get(long bytes) { memcpy(fetched, target, (size_t)bytes), complete(); }
static void put_many(long bytes) {
    long places = (long)BYTES / bytes;
    for (long k = 0; k < 1000; k++) {
        size_t at = (size_t)(k % places * bytes);
        memcpy(target + at, local + at, (size_t)bytes);
    }
    complete();
}
static void add(long count) {
    for (long k = 0; k < count; k++)
        __atomic_fetch_add(word(k), ((int64_t *)local)[k], __ATOMIC_SEQ_CST);
}
static void add_doubles(long count) {
    double *restrict to = (double *)target, *restrict from = (double *)local;
    for (long k = 0; k < count; k++) to[k] += from[k];
    complete();
}
static void count_up(long ranks) {
    (void)ranks;
    ((int64_t *)fetched)[0] = __atomic_fetch_add(word(0), 1, __ATOMIC_SEQ_CST);
}
static void fetch_and_add(long count) {
    for (long k = 0; k < count; k++)
        ((int64_t *)fetched)[k] =
            __atomic_fetch_add(word(k), ((int64_t *)local)[k], __ATOMIC_SEQ_CST);
}
static void swap(long count) {
    for (long k = 0; k < count; k++) {
        int64_t expected = wanted;
        __atomic_compare_exchange_n(word(k), &expected, wanted + 1, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
    }
    wanted++;
}

/* A lock is a word that is 0 or 1; all ranks change another word under it. */
static void lock_word(void) {
    int64_t unlocked = 0;
    while (!__atomic_compare_exchange_n(word(0), &unlocked, 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
        unlocked = 0;
}
static void lock_unlock(long value) {
    (void)value;
    lock_word();
    *word(8) += 1;
    __atomic_store_n(word(0), 0, __ATOMIC_RELEASE);
}

/* Data and a flag behind them, there and back. */
static int64_t *flag_in(char *memory) { return (int64_t *)(memory + BYTES - 64); }
static void raise_flag(long bytes) {
    memcpy(peer, local, (size_t)bytes);
    __atomic_store_n(flag_in(peer), turn, __ATOMIC_RELEASE);
}
static void wait_for_flag(void) {
    while (__atomic_load_n(flag_in(mine), __ATOMIC_ACQUIRE) != turn)
        ;
}
static void flag(long bytes) {
    turn++;
    if (is_origin()) raise_flag(bytes), wait_for_flag();
    else if (is_target()) wait_for_flag(), raise_flag(bytes);
}

static void prepare(long value) {
    (void)value;
    turn = 0;
    fill(local, BYTES, is_origin() ? 1 : 2);
    memset(mine, 0, BYTES);
    memset(fetched, 0, BYTES);
    complete();
    MPI_Barrier(job.comm);
}
static void prepare_get(long value) {
    prepare(value);
    if (is_target()) fill(mine, BYTES, 2);
    complete();
    MPI_Barrier(job.comm);
}
static void prepare_numbers(long count) {
    prepare(count);
    wanted = 0;
    for (long k = 0; k < count; k++) ((int64_t *)local)[k] = 1 + k % 7;
}
static int verify_put(long bytes) { return has(is_target(), mine, (size_t)bytes, 1); }
static int verify_flag(long bytes) {
    return verify_put(bytes) && has(is_origin(), mine, (size_t)bytes, 2);
}
static int verify_get(long bytes) { return has(is_origin(), fetched, (size_t)bytes, 2); }
static int verify_put_many(long bytes) {
    size_t total = 1000 * (size_t)bytes;
    return has(is_target(), mine, total < BYTES ? total : BYTES / (size_t)bytes * (size_t)bytes, 1);
}
static int verify_sum(long count) {
    for (long k = 0; k < count; k++)
        if (*word(k) != (1 + k % 7) * calls_made()) return 0;
    return *word(count) == 0;
}
static void prepare_doubles(long count) {
    prepare_numbers(count);
    for (long k = 0; k < count; k++) ((double *)local)[k] = (double)(1 + k % 7);
}
static int verify_doubles(long count) {
    for (long k = 0; k < count; k++)
        if (((double *)target)[k] != (double)((1 + k % 7) * calls_made())) return 0;
    return *word(count) == 0;
}
static int verify_count(long ranks) { return *word(0) == ranks * calls_made(); }
static int verify_swapped(long count) {
    for (long k = 0; k < count; k++)
        if (*word(k) != calls_made()) return 0;
    return *word(count) == 0;
}
static int verify_lock(long value) { return (void)value, *word(8) == calls_made(); }
/* Each rank counts its calls itself, as many as rank 0. */
static int verify_locks(long value) { return (void)value, *word(8) == calls_made() * job.ranks; }

typedef struct {
    Callers callers;
    Call *call, *prepare;
    int (*verify)(long value);
    long operations;
} Work;

static void point(const char *name, const char *parameter, long value, const Work *work) {
    static Series series;
    const Timed timed = {work->callers, work->call, NULL, NULL, 0, work->operations};
    open_memory();
    work->prepare(value);
    MPI_Barrier(job.comm);
    time_series(&timed, value, &series);
    MPI_Barrier(job.comm);
    report(name, parameter, value, &series, work->verify(value));
    MPI_Barrier(job.comm);
    MPI_Win_free(&win);
}

#define POINT(name, parameter, callers, call, prepare, verify, operations)                       \
    static void hand_##name(long value) {                                                        \
        static const Work work = {callers, call, prepare, verify, operations};                   \
        point("hand_" #name, parameter, value, &work);                                           \
    }
POINT(put, "bytes", ORIGIN, put, prepare, verify_put, 1)
POINT(get, "bytes", ORIGIN, get, prepare_get, verify_get, 1)
POINT(flag, "bytes", ALL, flag, prepare, verify_flag, 2)
POINT(put_rate, "bytes", ORIGIN, put_many, prepare, verify_put_many, 1000)
POINT(acc_sum, "elements", ORIGIN, add, prepare_numbers, verify_sum, 1)
POINT(acc_sum_double, "elements", ORIGIN, add_doubles, prepare_doubles, verify_doubles, 1)
POINT(counter, "ranks", ALL, count_up, prepare, verify_count, 1)
POINT(fop_sum, "elements", ORIGIN, fetch_and_add, prepare_numbers, verify_sum, 1)
POINT(cas, "elements", ORIGIN, swap, prepare_numbers, verify_swapped, 1)
POINT(lock_unlock, "ranks", ORIGIN, lock_unlock, prepare, verify_lock, 1)
POINT(lock_contended, "ranks", ALL, lock_unlock, prepare, verify_locks, 1)

#define ROW(name, parameter, values, what)                                                       \
    {                                                                                            \
        "hand_" #name, parameter, values, what, NO_WINDOW, (size_t)8 << 20, 2, {0}, NULL, NULL,  \
            hand_##name                                                                          \
    }

const Measurement by_hand[] = {
    ROW(put, "bytes", ALL_SIZES, "memcpy to shared memory"),
    ROW(get, "bytes", ALL_SIZES, "memcpy from shared memory"),
    ROW(flag, "bytes", ALL_SIZES, "memcpy and a flag that the other rank polls, half a round trip"),
    ROW(put_rate, "bytes", RATE_SIZES, "one of 1,000 memcpys before a fence instruction"),
    ROW(acc_sum, "elements", "1,10,100,1000,10000,100000", "an atomic addition to each integer"),
    ROW(acc_sum_double, "elements", "1,10,100,1000,10000,100000",
        "a plain loop that adds doubles to shared memory"),
    ROW(counter, "ranks", NULL, "all ranks: an atomic fetch-and-add of one integer"),
    ROW(fop_sum, "elements", "1,10,100,1000", "an atomic fetch-and-add of each integer"),
    ROW(cas, "elements", "1,10,100,1000", "an atomic compare-and-swap of each integer"),
    ROW(lock_unlock, "ranks", NULL, "a lock by compare-and-swap in a loop, and unlock"),
    ROW(lock_contended, "ranks", NULL, "the same by all ranks at one word"),
    {0}};
