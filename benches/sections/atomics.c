/* Accumulates, fetch-and-ops and compare-and-swaps by rank 0 on 8-byte elements of the target. */
#include "bench.h"

#include <string.h>

#define ELEMENTS "1,10,100,1000,10000,100000"
enum { ELEMENTS_MAX = 1 << 20 };

static int64_t *operands(void) { return (int64_t *)local; }
static int64_t *results(void) { return (int64_t *)fetched; }
static int64_t *elements(void) { return (int64_t *)wide.base; }
static void flush(void) { MPI_Win_flush(job.target, wide.win); }
static MPI_Aint at(long index) { return wide_at(job.target, 8 * (size_t)index); }

static void accumulate(long count, MPI_Datatype type, MPI_Op op) {
    MPI_Accumulate(local, (int)count, type, job.target, at(0), (int)count, type, op, wide.win);
    flush();
}
static void acc_sum(long count) { accumulate(count, MPI_INT64_T, MPI_SUM); }
static void acc_min(long count) { accumulate(count, MPI_INT64_T, MPI_MIN); }
static void acc_double(long count) { accumulate(count, MPI_DOUBLE, MPI_SUM); }
static void get_acc(long count) {
    MPI_Get_accumulate(local, (int)count, MPI_INT64_T, fetched, (int)count, MPI_INT64_T, job.target,
                       at(0), (int)count, MPI_INT64_T, MPI_SUM, wide.win);
    flush();
}
/* Single elements: as many calls, and one flush. */
static void fetch_and_op(long count) {
    for (long k = 0; k < count; k++)
        MPI_Fetch_and_op(operands() + k, results() + k, MPI_INT64_T, job.target, at(k), MPI_SUM,
                         wide.win);
    flush();
}
static void acc_single(long count) {
    for (long k = 0; k < count; k++)
        MPI_Accumulate(operands() + k, 1, MPI_INT64_T, job.target, at(k), 1, MPI_INT64_T, MPI_SUM,
                       wide.win);
    flush();
}
/* Each round expects what the one before stored, so that every comparison succeeds. */
static int64_t expected, wanted;
static void compare_and_swap(long count) {
    wanted = expected + 1;
    for (long k = 0; k < count; k++)
        MPI_Compare_and_swap(&wanted, &expected, results() + k, MPI_INT64_T, job.target, at(k),
                             wide.win);
    flush();
    expected = wanted;
}
/* The rate of MPI_Accumulate and MPI_Win_flush_local in a loop. */
static void acc_flush_local(long count) {
    MPI_Accumulate(local, (int)count, MPI_INT64_T, job.target, at(0), (int)count, MPI_INT64_T,
                   MPI_SUM, wide.win);
    MPI_Win_flush_local(job.target, wide.win);
}

static int64_t operand(long index) { return 1 + index % 7; }
static void prepare(long count) {
    for (long k = 0; k < count; k++) operands()[k] = operand(k);
    memset(wide.base, 0, wide.bytes);
    expected = 0;
    MPI_Win_sync(wide.win);
}
static void prepare_double(long count) {
    prepare(count);
    for (long k = 0; k < count; k++) ((double *)local)[k] = (double)operand(k);
}
/* Every second element is less than its operand already. */
static void prepare_min(long count) {
    prepare(count);
    for (long k = 0; k < count; k++) elements()[k] = k % 2 ? -k : 1000;
    MPI_Win_sync(wide.win);
}

static void complete(void) {
    if (is_origin()) flush();
    MPI_Barrier(job.comm);
    MPI_Win_sync(wide.win);
}
static int verify_sum(long count) {
    complete();
    for (long k = 0; is_target() && k < count; k++)
        if (elements()[k] != operand(k) * calls_made()) return 0;
    return !is_target() || elements()[count] == 0;
}
static int verify_double(long count) {
    complete();
    for (long k = 0; is_target() && k < count; k++)
        if (((double *)wide.base)[k] != (double)(operand(k) * calls_made())) return 0;
    return !is_target() || elements()[count] == 0;
}
static int verify_min(long count) {
    complete();
    for (long k = 0; is_target() && k < count; k++)
        if (elements()[k] != (k % 2 ? -k : operand(k))) return 0;
    return !is_target() || elements()[count] == 0;
}
/* The origin also has the value before its last call. */
static int verify_fetched(long count) {
    for (long k = 0; is_origin() && k < count; k++)
        if (results()[k] != operand(k) * (calls_made() - 1)) return 0;
    return verify_sum(count);
}
static int verify_swapped(long count) {
    for (long k = 0; is_origin() && k < count; k++)
        if (results()[k] != calls_made() - 1) return 0;
    complete();
    for (long k = 0; is_target() && k < count; k++)
        if (elements()[k] != calls_made()) return 0;
    return !is_target() || elements()[count] == 0;
}

/* All ranks add to one counter. */
static int64_t one = 1;
static void count(long ranks) {
    (void)ranks;
    MPI_Fetch_and_op(&one, results(), MPI_INT64_T, job.target, at(0), MPI_SUM, wide.win);
    flush();
}
static int verify_count(long ranks) {
    flush();
    MPI_Barrier(job.comm);
    MPI_Win_sync(wide.win);
    return !is_target() || elements()[0] == ranks * calls_made();
}

/* All ranks add to the same elements of one target. */
static int verify_shared_sum(long count) {
    flush();
    MPI_Barrier(job.comm);
    MPI_Win_sync(wide.win);
    for (long k = 0; is_target() && k < count; k++)
        if (elements()[k] != operand(k) * calls_made() * job.ranks) return 0;
    return !is_target() || elements()[count] == 0;
}

#define ROW(name, values, what, call, prepare, check)                                            \
    {                                                                                            \
        name, "elements", values, what, IN_LOCK_ALL, 8 * (size_t)ELEMENTS_MAX, 2,                \
            {ORIGIN, call, NULL, NULL, 0, 1}, prepare, check, NULL                               \
    }

const Measurement atomics[] = {
    ROW("acc_sum", ELEMENTS, "accumulate of integers with SUM, flush", acc_sum, prepare,
        verify_sum),
    ROW("acc_min", ELEMENTS, "accumulate of integers with MIN, flush", acc_min, prepare_min,
        verify_min),
    ROW("acc_sum_double", ELEMENTS, "accumulate of doubles with SUM, flush", acc_double,
        prepare_double, verify_double),
    ROW("get_acc_sum", ELEMENTS, "get_accumulate of integers with SUM, flush", get_acc, prepare,
        verify_fetched),
    ROW("cas", "1,10,100,1000", "as many compare-and-swaps, flush", compare_and_swap, prepare,
        verify_swapped),
    ROW("fop_sum", "1,10,100,1000", "as many fetch-and-ops with SUM, flush", fetch_and_op, prepare,
        verify_fetched),
    ROW("acc_sum_single", "1,10,100,1000", "as many accumulates of one integer, flush", acc_single,
        prepare, verify_sum),
    ROW("acc_flush_local", ELEMENTS, "accumulate of integers with SUM, flush_local",
        acc_flush_local, prepare, verify_sum),
    {"acc_sum_contended", "elements", "1,10,100,1000",
     "all ranks: accumulate of the same integers with SUM, flush", IN_LOCK_ALL,
     8 * (size_t)ELEMENTS_MAX, 2, {ALL, acc_sum, NULL, NULL, 0, 1}, prepare, verify_shared_sum,
     NULL},
    {"counter", "ranks", NULL, "all ranks: fetch-and-op on one integer, flush", IN_LOCK_ALL,
     8 * (size_t)ELEMENTS_MAX, 2, {ALL, count, NULL, NULL, 0, 1}, prepare, verify_count, NULL},
    {0}};
