/* Put and get of contiguous bytes by rank 0: latency, bandwidth, message rate. */
#include "bench.h"

enum { IN_FLIGHT = 16, RATE = 1000 };
static const size_t BYTES = (size_t)8 << 20;
static long seed;

static void flush(void) { MPI_Win_flush(job.target, wide.win); }

static void put_at(size_t offset, long bytes) {
    MPI_Put(local + offset, (int)bytes, MPI_BYTE, job.target, wide_at(job.target, offset),
            (int)bytes, MPI_BYTE, wide.win);
}

static void get_at(size_t offset, long bytes) {
    MPI_Get(fetched + offset, (int)bytes, MPI_BYTE, job.target, wide_at(job.target, offset),
            (int)bytes, MPI_BYTE, wide.win);
}

static void put(long bytes) { put_at(0, bytes), flush(); }
static void get(long bytes) { get_at(0, bytes), flush(); }

/* Many transfers side by side. Where they do not all find a place of their own in the window, some
 * write the same bytes to the same place. */
static size_t place(long index, long bytes) {
    return (size_t)(index % ((long)BYTES / bytes)) * (size_t)bytes;
}
static void put_many(long bytes, int count) {
    for (int k = 0; k < count; k++) put_at(place(k, bytes), bytes);
}
static void get_many(long bytes, int count) {
    for (int k = 0; k < count; k++) get_at(place(k, bytes), bytes);
}
static void put_in_flight(long bytes) { put_many(bytes, IN_FLIGHT), flush(); }
static void get_in_flight(long bytes) { get_many(bytes, IN_FLIGHT), flush(); }
static void put_rate(long bytes) { put_many(bytes, RATE), flush(); }
static void get_rate(long bytes) { get_many(bytes, RATE), flush(); }
static void put_start(long bytes) { put_many(bytes, RATE); }
static void flush_after(long bytes) { (void)bytes, flush(); }

static void put_request(long bytes) {
    MPI_Request request;
    MPI_Rput(local, (int)bytes, MPI_BYTE, job.target, wide_at(job.target, 0), (int)bytes, MPI_BYTE,
             wide.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void get_request(long bytes) {
    MPI_Request request;
    MPI_Rget(fetched, (int)bytes, MPI_BYTE, job.target, wide_at(job.target, 0), (int)bytes,
             MPI_BYTE, wide.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Of rank 0: the others have slept through some measurements of this job. */
static void next_seed(void) {
    seed++;
    MPI_Bcast(&seed, 1, MPI_LONG, 0, job.comm);
}

/* Puts bring the origin's pattern to the target, gets the target's to the origin. The other memory
 * has another pattern before, also after the last of the transfers of a call. */
static size_t span(long bytes) {
    size_t most = (size_t)bytes * RATE + 1;
    return most < BYTES ? most : BYTES;
}
static void prepare_put(long bytes) {
    next_seed();
    fill(local, span(bytes), seed);
    fill(wide.base, span(bytes), seed + 1);
    MPI_Win_sync(wide.win);
}
static void prepare_get(long bytes) {
    next_seed();
    fill(wide.base, span(bytes), seed);
    fill(fetched, span(bytes), seed + 1);
    MPI_Win_sync(wide.win);
}

static size_t length(long bytes, int count) {
    size_t wanted = (size_t)bytes * (size_t)count, fits = BYTES / (size_t)bytes * (size_t)bytes;
    return wanted < fits ? wanted : fits;
}
static int verify_put(long bytes, int count) {
    size_t total = length(bytes, count);
    MPI_Win_sync(wide.win);
    int is_clean = total == wide.bytes || !is_target() ||
                   wide.base[total] == pattern(total, seed + 1);
    return has(is_target(), wide.base, total, seed) && is_clean;
}
static int verify_get(long bytes, int count) {
    size_t total = length(bytes, count);
    int is_clean = total == wide.bytes || !is_origin() ||
                   fetched[total] == pattern(total, seed + 1);
    return has(is_origin(), fetched, total, seed) && is_clean;
}
/* A put with a request is complete at the target after a flush. */
static int verify_put_request(long bytes) {
    if (is_origin()) flush();
    MPI_Barrier(job.comm);
    return verify_put(bytes, 1);
}
static int verify_put_one(long bytes) { return verify_put(bytes, 1); }
static int verify_get_one(long bytes) { return verify_get(bytes, 1); }
static int verify_put_in_flight(long bytes) { return verify_put(bytes, IN_FLIGHT); }
static int verify_get_in_flight(long bytes) { return verify_get(bytes, IN_FLIGHT); }
static int verify_put_rate(long bytes) { return verify_put(bytes, RATE); }
static int verify_get_rate(long bytes) { return verify_get(bytes, RATE); }

#define ROW(name, values, what, call, after, operations, kind, check)                            \
    {                                                                                            \
        name, "bytes", values, what, IN_LOCK_ALL, (size_t)8 << 20, 2,                            \
            {ORIGIN, call, NULL, after, 0, operations}, prepare_##kind, check, NULL              \
    }

const Measurement transfers[] = {
    ROW("put", ALL_SIZES, "put and flush", put, NULL, 1, put, verify_put_one),
    ROW("get", ALL_SIZES, "get and flush", get, NULL, 1, get, verify_get_one),
    ROW("put_bandwidth", ALL_SIZES, "one of 16 puts before a flush", put_in_flight, NULL, IN_FLIGHT,
        put, verify_put_in_flight),
    ROW("get_bandwidth", ALL_SIZES, "one of 16 gets before a flush", get_in_flight, NULL, IN_FLIGHT,
        get, verify_get_in_flight),
    ROW("put_rate", RATE_SIZES, "one of 1,000 puts before a flush", put_rate, NULL, RATE, put,
        verify_put_rate),
    ROW("get_rate", RATE_SIZES, "one of 1,000 gets before a flush", get_rate, NULL, RATE, get,
        verify_get_rate),
    ROW("rput_wait", ALL_SIZES, "put with a request, and wait", put_request, NULL, 1, put,
        verify_put_request),
    ROW("rget_wait", ALL_SIZES, "get with a request, and wait", get_request, NULL, 1, get,
        verify_get_one),
    {"put_start", "bytes", RATE_SIZES, "one of 1,000 puts, without the flush", IN_LOCK_ALL,
     (size_t)8 << 20, 2, {ORIGIN, put_start, NULL, flush_after, 1, RATE}, prepare_put,
     verify_put_rate, NULL},
    {0}};
