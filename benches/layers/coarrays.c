/* Coarrays as a layer of scripts/bench: the operations of coarrays.f90 as measurements, timed by
 * the code of rma_bench (../sections). Its measurements: `coarray_bench --list`. */
#include "../sections/bench.h"

#include <stdlib.h>
#include <string.h>

#define SIZES                                                                                    \
    "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,524288,"   \
    "1048576,2097152,4194304"
#define RATE_SIZES "1,2,4,8,16,32,64,128,256,512,1024,2048,4096"
#define ELEMENTS "1,10,100,1000"
enum { RATE = 1000, TURNS = 20, IMAGES_MAX = 4096 };
static const size_t BYTES = (size_t)8 << 20;

/* Of coarrays.f90. */
typedef struct {
    char *exposed, *bytes_of_images;
    int *integers;
    char *out, *in;
    int *results;
    int elements_max, integer_bytes;
} Memory;
void coarray_open(int rank, Memory *known);
void coarray_expect_zero(void);
long coarray_count(long turns);
Call coarray_put, coarray_get, coarray_put_rate, coarray_add, coarray_cas,
    coarray_sync_memory, coarray_sync_all, coarray_put_sync_all, coarray_sync_images,
    coarray_put_sync_images, coarray_lock, coarray_lock_put;

static Memory memory;
static long seed;

/* Collective, before the first measurement. */
static void open_memory(void) {
    if (memory.exposed) return;
    coarray_open(job.target, &memory);
    if (job.ranks > IMAGES_MAX || memory.integer_bytes != (int)sizeof *memory.integers) leave(2);
}

/* Puts bring the origin's pattern to the target, gets the target's to the origin. */
static void prepare_bytes(long bytes) {
    (void)bytes;
    open_memory();
    seed++;
    MPI_Bcast(&seed, 1, MPI_LONG, 0, job.comm);
    fill(memory.out, BYTES, seed);
    memset(memory.in, 0, BYTES);
    fill(memory.exposed, BYTES, is_target() ? seed + 1 : seed + 2);
    coarray_sync_all(0);
}
static int verify_put(long bytes) {
    coarray_sync_all(0);
    return has(is_target(), memory.exposed, (size_t)bytes, seed) &&
           (!is_target() || memory.exposed[bytes] == pattern((size_t)bytes, seed + 1));
}
static int verify_rate(long bytes) { return verify_put(bytes * RATE); }
static int verify_get(long bytes) { return has(is_origin(), memory.in, (size_t)bytes, seed + 1); }

static void prepare_integers(long count) {
    (void)count;
    open_memory();
    coarray_sync_all(0);
    memset(memory.integers, 0, (size_t)memory.elements_max * sizeof *memory.integers);
    coarray_expect_zero();
    coarray_sync_all(0);
}
static int verify_integers(long count, int is_swap) {
    coarray_sync_all(0);
    for (long k = 0; is_target() && k < count; k++)
        if (memory.integers[k] != (int)((is_swap ? 1 : 1 + k % 7) * calls_made())) return 0;
    return !is_target() || memory.integers[count] == 0;
}
static int verify_add(long count) { return verify_integers(count, 0); }
/* The origin also has the value before its last call. */
static int verify_swapped(long count) {
    int is_right = 1;
    for (long k = 0; is_origin() && k < count; k++)
        is_right &= memory.results[k] == (int)(calls_made() - 1);
    return verify_integers(count, 1) && is_right;
}

static void prepare_ring(long value) { (void)value, open_memory(); }
/* After a call that puts a byte to the neighbours, those of the neighbours are here. */
static int verify_ring(Call *call, int is_both) {
    int next = (job.rank + 1) % job.ranks, previous = (job.rank + job.ranks - 1) % job.ranks;
    coarray_sync_all(0);
    memset(memory.bytes_of_images, 0, IMAGES_MAX);
    coarray_sync_all(0);
    call(0);
    return memory.bytes_of_images[previous] == 1 && (!is_both || memory.bytes_of_images[next] == 1);
}
static int verify_all(long value) { return (void)value, verify_ring(coarray_put_sync_all, 0); }
static int verify_images(long value) {
    return (void)value, verify_ring(coarray_put_sync_images, 1);
}
/* With nothing to complete it is timed; here it completes a put. */
static int verify_memory(long value) {
    prepare_bytes(value);
    if (is_origin()) coarray_put(4096);
    return verify_put(4096);
}

static int verify_lock(long value) {
    (void)value;
    long total = coarray_count(TURNS);
    return !is_target() || total == TURNS * (long)job.ranks;
}
static int verify_lock_put(long value) {
    int is_there = has(is_target(), memory.exposed, 1, seed);
    return verify_lock(value) && is_there;
}

#define ROW(name, parameter, values, what, operations, prepare, check)                           \
    {                                                                                            \
        #name, parameter, values, what, NO_WINDOW, 0, 2,                                         \
            {ORIGIN, name, NULL, NULL, 0, operations}, prepare, check, NULL                      \
    }
#define EVERY(name, parameter, values, what, ranks_min, check)                                   \
    {                                                                                            \
        #name, parameter, values, what, NO_WINDOW, 0, ranks_min,                                 \
            {ALL, name, NULL, NULL, 0, 1}, prepare_ring, check, NULL                             \
    }

static const Measurement coarrays[] = {
    ROW(coarray_put, "bytes", SIZES, "put, sync memory", 1, prepare_bytes, verify_put),
    ROW(coarray_get, "bytes", SIZES, "get", 1, prepare_bytes, verify_get),
    ROW(coarray_put_rate, "bytes", RATE_SIZES, "one of 1,000 puts before a sync memory", RATE,
        prepare_bytes, verify_rate),
    ROW(coarray_add, "elements", ELEMENTS, "as many atomic_add of 4 bytes, sync memory", 1,
        prepare_integers, verify_add),
    ROW(coarray_cas, "elements", ELEMENTS, "as many atomic_cas of 4 bytes", 1, prepare_integers,
        verify_swapped),
    ROW(coarray_sync_memory, "ranks", NULL, "sync memory with nothing to complete", 1,
        prepare_bytes, verify_memory),
    EVERY(coarray_sync_all, "ranks", NULL, "sync all without transfers", 2, verify_all),
    EVERY(coarray_put_sync_all, "ranks", NULL, "every image puts a byte to the next one, sync all",
          2, verify_all),
    EVERY(coarray_sync_images, "neighbours", "2", "sync images on a ring with two neighbours", 3,
          verify_images),
    ROW(coarray_lock, "ranks", NULL, "lock and unlock", 1, prepare_bytes, verify_lock),
    ROW(coarray_lock_put, "ranks", NULL, "lock, put of a byte, unlock", 1, prepare_bytes,
        verify_lock_put),
    {0}};

const Measurement *const tables[] = {coarrays, NULL};

/* What gfortran calls at the end of a program. `stop` would make OpenCoarrays call MPI_Abort. */
void _gfortran_caf_finalize(void);
_Noreturn void leave(int status) {
    _gfortran_caf_finalize();
    exit(status);
}

/* The main program is Fortran's, whose start makes the images; it has no arguments for C. */
static int arguments;
static char **words;
__attribute__((constructor)) static void keep_arguments(int argc, char **argv) {
    arguments = argc, words = argv;
}

void run_coarrays(void) { leave(run_commands(arguments, words)); }
