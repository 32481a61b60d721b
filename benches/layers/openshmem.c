/* OpenSHMEM as a layer of scripts/bench: transfers, atomics and synchronization by calls of
 * OpenSHMEM 1.4, timed by the code of rma_bench (../sections). A processing element is a rank: the
 * library has to be one on MPI, such as OSHMPI. Its measurements: `openshmem_bench --list`.
 *
 * shmem_quiet follows each put, as a flush follows those of rma_bench. */
#include "../sections/bench.h"

#include <shmem.h>
#include <stdlib.h>
#include <string.h>

#define SIZES                                                                                    \
    "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,524288,"   \
    "1048576,2097152,4194304"
#define RATE_SIZES "1,2,4,8,16,32,64,128,256,512,1024,2048,4096"
#define ELEMENTS "1,10,100,1000"
enum { RATE = 1000, ELEMENTS_MAX = 1024, TURNS = 20 };
static const size_t BYTES = (size_t)8 << 20;

/* Symmetric memory: bytes, integers, a byte for each rank, a lock and its number. */
static char *exposed, *bytes_of_ranks;
static long *integers, *lock, *number;
static char *out, *in;
static long seed;

static void open_memory(void) {
    if (exposed) return;
    exposed = shmem_malloc(BYTES);
    integers = shmem_calloc(ELEMENTS_MAX + 1, sizeof *integers);
    bytes_of_ranks = shmem_calloc((size_t)job.ranks, 1);
    lock = shmem_calloc(1, sizeof *lock);
    number = shmem_calloc(1, sizeof *number);
    out = malloc(BYTES), in = malloc(BYTES);
    if (!exposed || !integers || !bytes_of_ranks || !lock || !number || !out || !in) leave(2);
}

static void put(long bytes) {
    shmem_putmem(exposed, out, (size_t)bytes, job.target);
    shmem_quiet();
}
static void get(long bytes) { shmem_getmem(in, exposed, (size_t)bytes, job.target); }
static size_t place(long index, long bytes) {
    return (size_t)(index % ((long)BYTES / bytes)) * (size_t)bytes;
}
static void put_rate(long bytes) {
    for (long k = 0; k < RATE; k++)
        shmem_putmem_nbi(exposed + place(k, bytes), out + place(k, bytes), (size_t)bytes,
                         job.target);
    shmem_quiet();
}

/* Puts bring the origin's pattern to the target, gets the target's to the origin. */
static void prepare_bytes(long bytes) {
    (void)bytes;
    open_memory();
    seed++;
    MPI_Bcast(&seed, 1, MPI_LONG, 0, job.comm);
    fill(out, BYTES, seed);
    memset(in, 0, BYTES);
    fill(exposed, BYTES, is_target() ? seed + 1 : seed + 2);
    shmem_barrier_all();
}
static int verify_put(long bytes) {
    shmem_barrier_all();
    return has(is_target(), exposed, (size_t)bytes, seed) &&
           (!is_target() || exposed[bytes] == pattern((size_t)bytes, seed + 1));
}
static int verify_rate(long bytes) { return verify_put(bytes * RATE); }
static int verify_get(long bytes) { return has(is_origin(), in, (size_t)bytes, seed + 1); }

/* As many calls as there are elements, and one quiet. */
static void add(long count) {
    for (long k = 0; k < count; k++) shmem_long_atomic_add(integers + k, 1 + k % 7, job.target);
    shmem_quiet();
}
static long results[ELEMENTS_MAX], expected;
static void fetch_add(long count) {
    for (long k = 0; k < count; k++)
        results[k] = shmem_long_atomic_fetch_add(integers + k, 1 + k % 7, job.target);
}
static void compare_swap(long count) {
    for (long k = 0; k < count; k++)
        results[k] = shmem_long_atomic_compare_swap(integers + k, expected, expected + 1,
                                                    job.target);
    expected++;
}
static void prepare_integers(long count) {
    (void)count;
    open_memory();
    shmem_barrier_all();
    memset(integers, 0, (ELEMENTS_MAX + 1) * sizeof *integers);
    expected = 0;
    shmem_barrier_all();
}
static int verify_integers(long count, int is_swap) {
    shmem_barrier_all();
    for (long k = 0; is_target() && k < count; k++)
        if (integers[k] != (is_swap ? 1 : 1 + k % 7) * calls_made()) return 0;
    return !is_target() || integers[count] == 0;
}
static int verify_add(long count) { return verify_integers(count, 0); }
/* The origin also has the value before its last call. */
static int verify_results(long count, int is_swap) {
    int is_right = 1;
    for (long k = 0; is_origin() && k < count; k++)
        is_right &= results[k] == ((is_swap ? 1 : 1 + k % 7) * (calls_made() - 1));
    return verify_integers(count, is_swap) && is_right;
}
static int verify_fetched(long count) { return verify_results(count, 0); }
static int verify_swapped(long count) { return verify_results(count, 1); }

static void quiet(long value) { (void)value, shmem_quiet(); }
static void barrier(long value) { (void)value, shmem_barrier_all(); }
/* Every rank puts a byte to the next one. */
static void put_barrier(long value) {
    static const char one = 1;
    (void)value;
    shmem_putmem(bytes_of_ranks + job.rank, &one, 1, (job.rank + 1) % job.ranks);
    shmem_barrier_all();
}
static void prepare_ring(long value) { (void)value, open_memory(); }
static int verify_barrier(long value) {
    shmem_barrier_all();
    memset(bytes_of_ranks, 0, (size_t)job.ranks);
    shmem_barrier_all();
    put_barrier(value);
    return bytes_of_ranks[(job.rank + job.ranks - 1) % job.ranks] == 1;
}
/* With nothing to complete it is timed; here it completes a put. */
static int verify_quiet(long value) {
    prepare_bytes(value);
    if (is_origin()) put(4096);
    return verify_put(4096);
}

/* OSHMPI keeps a lock at rank 0, which is the origin: between nodes the time would contain no
 * message, so locks are measured on one node only. */
static void lock_unlock(long value) { (void)value, shmem_set_lock(lock), shmem_clear_lock(lock); }
static void lock_put(long value) {
    (void)value;
    shmem_set_lock(lock);
    shmem_putmem(exposed, out, 1, job.target);
    shmem_clear_lock(lock);
}
/* Every rank adds 1 to a number of the target in some turns, by get and put under the lock. */
static int verify_lock(long value) {
    (void)value;
    shmem_barrier_all();
    *number = 0;
    shmem_barrier_all();
    for (int turn = 0; turn < TURNS; turn++) {
        shmem_set_lock(lock);
        long next = shmem_long_g(number, job.target) + 1;
        shmem_long_p(number, next, job.target);
        shmem_quiet();
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    return !is_target() || *number == TURNS * (long)job.ranks;
}
static int verify_lock_put(long value) {
    int is_there = has(is_target(), exposed, 1, seed);
    return verify_lock(value) && is_there;
}
static void time_lock(const char *name, Call *call, int (*verify)(long), long value) {
    static Series series;
    const Timed timed = {ORIGIN, call, NULL, NULL, 0, 1};
    if (!job.is_one_node) return;
    prepare_bytes(value);
    time_series(&timed, value, &series);
    report(name, "ranks", value, &series, verify(value));
}
static void lock_point(long value) { time_lock("shmem_lock", lock_unlock, verify_lock, value); }
static void lock_put_point(long value) {
    time_lock("shmem_lock_put", lock_put, verify_lock_put, value);
}

#define ROW(name, parameter, values, what, call, operations, prepare, check)                     \
    {                                                                                            \
        name, parameter, values, what, NO_WINDOW, 0, 2,                                          \
            {ORIGIN, call, NULL, NULL, 0, operations}, prepare, check, NULL                      \
    }
#define EVERY(name, what, call)                                                                  \
    {                                                                                            \
        name, "ranks", NULL, what, NO_WINDOW, 0, 2, {ALL, call, NULL, NULL, 0, 1}, prepare_ring, \
            verify_barrier, NULL                                                                 \
    }

#define LOCK(name, what, point)                                                                  \
    { name, "ranks", NULL, what, NO_WINDOW, 0, 2, {0}, NULL, NULL, point }

static const Measurement openshmem[] = {
    ROW("shmem_put", "bytes", SIZES, "shmem_putmem, quiet", put, 1, prepare_bytes, verify_put),
    ROW("shmem_get", "bytes", SIZES, "shmem_getmem", get, 1, prepare_bytes, verify_get),
    ROW("shmem_put_rate", "bytes", RATE_SIZES, "one of 1,000 shmem_putmem_nbi before a quiet",
        put_rate, RATE, prepare_bytes, verify_rate),
    ROW("shmem_add", "elements", ELEMENTS, "as many atomic adds, quiet", add, 1, prepare_integers,
        verify_add),
    ROW("shmem_fetch_add", "elements", ELEMENTS, "as many atomic fetch-and-adds", fetch_add, 1,
        prepare_integers, verify_fetched),
    ROW("shmem_compare_swap", "elements", ELEMENTS, "as many atomic compare-and-swaps",
        compare_swap, 1, prepare_integers, verify_swapped),
    ROW("shmem_quiet", "ranks", NULL, "quiet with nothing to complete", quiet, 1, prepare_bytes,
        verify_quiet),
    EVERY("shmem_barrier", "barrier_all without transfers", barrier),
    EVERY("shmem_put_barrier", "every rank puts a byte to the next one, barrier_all", put_barrier),
    LOCK("shmem_lock", "set_lock and clear_lock, on one node", lock_point),
    LOCK("shmem_lock_put", "set_lock, put of a byte, clear_lock, on one node", lock_put_point),
    {0}};

const Measurement *const tables[] = {openshmem, NULL};

_Noreturn void leave(int status) {
    shmem_finalize();
    exit(status);
}

int main(int argc, char **argv) {
    shmem_init();
    leave(run_commands(argc, argv));
}
