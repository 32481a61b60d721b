/* Puts of single bytes and of single doubles with gaps between them: as one derived datatype, as a
 * put of each block, and packed by hand. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static MPI_Datatype vector;
static long block; /* bytes of a block; as many are between it and the next one */
static char *packed;

static void flush(void) { MPI_Win_flush(job.target, wide.win); }
static long blocks(long bytes) { return bytes / block; }

static void put_vector(long bytes) {
    (void)bytes;
    MPI_Put(local, 1, vector, job.target, wide_at(job.target, 0), 1, vector, wide.win);
    flush();
}
static void put_each(long bytes) {
    for (long k = 0; k < blocks(bytes); k++) {
        size_t at = 2 * (size_t)(block * k);
        MPI_Put(local + at, (int)block, MPI_BYTE, job.target, wide_at(job.target, at), (int)block,
                MPI_BYTE, wide.win);
    }
    flush();
}
/* The origin also does the work of the unpacking, which the target would do at the same speed. */
static void pack_put_unpack(long bytes) {
    int position = 0;
    MPI_Pack(local, 1, vector, packed, (int)bytes, &position, job.comm);
    MPI_Put(packed, position, MPI_BYTE, job.target, wide_at(job.target, 0), position, MPI_BYTE,
            wide.win);
    flush();
    position = 0;
    MPI_Unpack(packed, (int)bytes, &position, fetched, 1, vector, job.comm);
}

static void prepare(long bytes) {
    fill(local, wide.bytes, 3);
    memset(wide.base, 0, wide.bytes);
    memset(fetched, 0, wide.bytes);
    packed = calloc(1, (size_t)bytes);
    MPI_Type_vector((int)blocks(bytes), (int)block, 2 * (int)block, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    MPI_Win_sync(wide.win);
}
/* Doubles at places in random order, with gaps. */
static void prepare_random(long bytes) {
    block = sizeof(double), prepare(bytes);
    MPI_Type_free(&vector);
    int count = (int)blocks(bytes), *places = malloc((size_t)count * sizeof *places);
    unsigned random = 1;
    for (int k = 0; k < count; k++) {
        random = random * 1103515245u + 12345;
        int other = (int)(random >> 8) % (k + 1);
        places[k] = places[other], places[other] = 2 * k;
    }
    MPI_Type_create_indexed_block(count, 1, places, MPI_DOUBLE, &vector);
    MPI_Type_commit(&vector);
    free(places);
}
static void prepare_bytes(long bytes) { block = 1, prepare(bytes); }
static void prepare_doubles(long bytes) { block = sizeof(double), prepare(bytes); }

/* The blocks have the pattern, and the gaps are as they were. */
static int is_vector(const char *memory, long bytes) {
    for (size_t at = 0; at < 2 * (size_t)bytes; at++) {
        int is_gap = at / (size_t)block % 2 != 0;
        if (memory[at] != (is_gap ? 0 : pattern(at, 3))) return 0;
    }
    return 1;
}
static void release(void) {
    free(packed);
    MPI_Type_free(&vector);
}
static int verify(long bytes) {
    release();
    MPI_Win_sync(wide.win);
    return !is_target() || is_vector(wide.base, bytes);
}
static int verify_packed(long bytes) {
    release();
    MPI_Win_sync(wide.win);
    if (is_target())
        for (long at = 0; at < bytes; at++)
            if (wide.base[at] != pattern((size_t)(at + at / block * block), 3)) return 0;
    return !is_origin() || is_vector(fetched, bytes);
}

#define ROW(name, values, what, call, kind, check)                                               \
    {                                                                                            \
        name, "bytes", values, what, IN_LOCK_ALL, (size_t)2 << 20, 2,                            \
            {ORIGIN, call, NULL, NULL, 0, 1}, prepare_##kind, check, NULL                        \
    }
#define SIZES "8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536"

const Measurement derived[] = {
    ROW("put_vector", SIZES, "put of a vector of bytes with stride 2, flush", put_vector, bytes,
        verify),
    ROW("put_each_byte", SIZES, "the same by a put of each byte", put_each, bytes, verify),
    ROW("pack_put_unpack", SIZES, "the same packed by MPI_Pack, put and unpacked", pack_put_unpack,
        bytes, verify_packed),
    ROW("put_doubles", SIZES, "put of a vector of doubles with stride 2, flush", put_vector,
        doubles, verify),
    ROW("put_random", SIZES, "put of doubles at random places, flush", put_vector, random, verify),
    ROW("put_each_double", SIZES, "the same by a put of each double", put_each, doubles, verify),
    ROW("pack_put_doubles", SIZES, "the same packed by MPI_Pack, put and unpacked",
        pack_put_unpack, doubles, verify_packed),
    {0}};
