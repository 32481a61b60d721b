/* What each attribute of a transfer by a memory handle costs (fompi_rma.h): all ranks but the target put 100
 * times to the same bytes of it, all at once, and complete that: Figure 2 of Tipparaju and others. The nearest
 * that every MPI has is here, too. An MPI alone has no memory handles, so their functions are looked up at run
 * time; without them no point is printed. */
#define _GNU_SOURCE
#include "bench.h"

#include "../../include/fompi_rma.h"

#include <dlfcn.h>
#include <string.h>

enum { PUTS = 100, BYTES_MAX = 1 << 16 };
#define SIZES "8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536"

static __typeof__(FOMPI_Mem_allocate) *mem_allocate;
static __typeof__(FOMPI_Mem_pack) *mem_pack;
static __typeof__(FOMPI_Mem_unpack) *mem_unpack;
static __typeof__(FOMPI_Mem_put) *mem_put;
static __typeof__(FOMPI_Mem_withdraw) *mem_withdraw;
static __typeof__(FOMPI_Mem_release) *mem_release;
static __typeof__(FOMPI_Complete) *complete;

/* Whether the process has these functions. */
static int find(void) {
    static const struct {
        const char *name;
        void *function;
    } calls[] = {{"FOMPI_Mem_allocate", &mem_allocate}, {"FOMPI_Mem_pack", &mem_pack},
                 {"FOMPI_Mem_unpack", &mem_unpack},     {"FOMPI_Mem_put", &mem_put},
                 {"FOMPI_Mem_withdraw", &mem_withdraw}, {"FOMPI_Mem_release", &mem_release},
                 {"FOMPI_Complete", &complete}};
    for (size_t k = 0; k < COUNT(calls); k++)
        if (!(*(void **)calls[k].function = dlsym(RTLD_DEFAULT, calls[k].name))) return 0;
    return 1;
}

static MPI_Win win; /* a dynamic one */
static FOMPI_Mem mem;
static char *memory; /* of the target */

/* Gives all ranks the handle of the target; 0 if there are none. Collective. */
static int open_memory(void) {
    char packed[FOMPI_MEM_BYTES] = {0};
    int is_open = 1, all;
    MPI_Win_create_dynamic(MPI_INFO_NULL, job.comm, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (is_target())
        is_open = mem_allocate(BYTES_MAX, MPI_INFO_NULL, win, &memory, &mem) == MPI_SUCCESS &&
                  mem_pack(mem, packed) == MPI_SUCCESS;
    MPI_Bcast(packed, FOMPI_MEM_BYTES, MPI_BYTE, job.target, job.comm);
    if (!is_target()) is_open = mem_unpack(packed, win, &mem) == MPI_SUCCESS;
    MPI_Allreduce(&is_open, &all, 1, MPI_INT, MPI_MIN, job.comm);
    return all;
}

static void close_memory(void) {
    MPI_Barrier(job.comm);
    if (!is_target()) mem_release(&mem);
    else if (mem_withdraw(&mem) == MPI_SUCCESS) MPI_Free_mem(memory);
}

static void puts_with(long bytes, int attributes) {
    if (is_target()) return;
    for (int k = 0; k < PUTS; k++) mem_put(local, bytes, MPI_BYTE, mem, 0, attributes);
    complete(job.target, win);
}
static void plain(long bytes) { puts_with(bytes, FOMPI_BLOCKING); }
static void ordered(long bytes) { puts_with(bytes, FOMPI_BLOCKING | FOMPI_ORDERED); }
static void remote(long bytes) { puts_with(bytes, FOMPI_BLOCKING | FOMPI_REMOTE); }
static void atomic(long bytes) { puts_with(bytes, FOMPI_BLOCKING | FOMPI_ATOMIC); }

/* All origins put the same bytes. */
static void point(const char *name, Call *call, long bytes) {
    static Series series;
    const Timed timed = {ALL, call, NULL, NULL, 0, 1};
    if (bytes > BYTES_MAX || !find()) return;
    if (open_memory()) {
        fill(local, BYTES_MAX, 3);
        if (is_target()) fill(memory, BYTES_MAX, -1);
        MPI_Barrier(job.comm);
        time_series(&timed, bytes, &series);
        MPI_Barrier(job.comm);
        MPI_Win_sync(win);
        int is_right = has(is_target(), memory, (size_t)bytes, 3);
        report(name, "bytes", bytes, &series, is_right);
        close_memory();
    }
    MPI_Win_free(&win);
}

#define POINT(name, call)                                                                        \
    static void name##_point(long bytes) { point(#name, call, bytes); }
POINT(puts_blocking, plain)
POINT(puts_ordered, ordered)
POINT(puts_remote, remote)
POINT(puts_atomic, atomic)

/* The nearest of MPI, on the window of the measurement. */
static MPI_Aint there(void) { return wide_at(job.target, 0); }
static void put_100(long bytes) {
    if (is_target()) return;
    for (int k = 0; k < PUTS; k++)
        MPI_Put(local, (int)bytes, MPI_BYTE, job.target, there(), (int)bytes, MPI_BYTE, wide.win);
    MPI_Win_flush(job.target, wide.win);
}
static void put_flush_100(long bytes) {
    if (is_target()) return;
    for (int k = 0; k < PUTS; k++) {
        MPI_Put(local, (int)bytes, MPI_BYTE, job.target, there(), (int)bytes, MPI_BYTE, wide.win);
        MPI_Win_flush(job.target, wide.win);
    }
}
static void replace_100(long bytes) {
    if (is_target()) return;
    for (int k = 0; k < PUTS; k++)
        MPI_Accumulate(local, (int)bytes, MPI_BYTE, job.target, there(), (int)bytes, MPI_BYTE,
                       MPI_REPLACE, wide.win);
    MPI_Win_flush(job.target, wide.win);
}

static void prepare(long bytes) {
    (void)bytes;
    fill(local, BYTES_MAX, 3);
    if (is_target()) fill(wide.base, BYTES_MAX, -1);
    MPI_Win_sync(wide.win);
    MPI_Barrier(job.comm);
}
static int verify(long bytes) {
    MPI_Barrier(job.comm);
    MPI_Win_sync(wide.win);
    return has(is_target(), wide.base, (size_t)bytes, 3);
}

#define BY_HANDLE(name, what)                                                                    \
    { #name, "bytes", SIZES, what, NO_EPOCH, BYTES_MAX, 2, {0}, NULL, NULL, name##_point }
#define OF_MPI(name, what)                                                                       \
    { #name, "bytes", SIZES, what, IN_LOCK_ALL, BYTES_MAX, 2, {ALL, name, NULL, NULL, 0, 1},      \
      prepare, verify, NULL }

const Measurement attributes[] = {
    BY_HANDLE(puts_blocking, "100 FOMPI_Mem_put of all ranks to one, and FOMPI_Complete: FOMPI_BLOCKING"),
    BY_HANDLE(puts_ordered, "the same, and FOMPI_ORDERED"),
    BY_HANDLE(puts_remote, "the same, and FOMPI_REMOTE"),
    BY_HANDLE(puts_atomic, "the same, and FOMPI_ATOMIC"),
    OF_MPI(put_100, "100 puts of all ranks to one, and a flush"),
    OF_MPI(put_flush_100, "the same, with a flush behind each"),
    OF_MPI(replace_100, "the same by accumulates with MPI_REPLACE, which are ordered, and a flush"),
    {0}};
