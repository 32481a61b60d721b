/* The subset of OpenSHMEM in shmem.h. Each process exposes two parts of its memory by handles: the heap,
 * which it allocates, and the variables of the program. The handles are sent to all once; each process
 * makes those that it uses. Order is FOMPI_Win_order, completion FOMPI_Complete. */
#define _GNU_SOURCE
#include "shmem.h"
#include "../handles.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAP, VARIABLES, PARTS };

/* The largest alignment that shmem_align serves. */
#define ALIGNMENT 16777216
#define STRING(number) TEXT(number)
#define TEXT(number) #number

/* A part of this process, and how others reach their own. */
typedef struct {
    char *base;
    size_t bytes;
    FOMPI_Mem mine;
    char *packed;
} Part;

/* A context: the window or a duplicate, and the handles that it has made. */
struct shmem_context {
    MPI_Win win;
    FOMPI_Mem *theirs[PARTS];
    struct shmem_context *next;
};

/* A block of the heap. All processes have the same. */
typedef struct Block {
    size_t at, bytes;
    int is_used;
    struct Block *next;
} Block;

extern char __data_start[], _end[]; /* of the linker: the variables of the program */
static Part parts[PARTS];
static Block *blocks;
static struct shmem_context all; /* the default one, then those in use */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int me, pes, level, starts_mpi;

static void fail(const char *call, const char *why) {
    fprintf(stderr, "PE %d: %s: %s\n", me, call, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* --- start and end -------------------------------------------------------------------------------- */

static void begin(struct shmem_context *context) {
    for (int part = 0; part < PARTS; part++)
        context->theirs[part] = calloc((size_t)pes, sizeof *context->theirs[part]);
}

/* Releases the handles, and frees the window or duplicate. */
static void end(struct shmem_context *context) {
    for (int part = 0; part < PARTS; part++) {
        for (int pe = 0; pe < pes; pe++)
            if (context->theirs[part][pe]) FOMPI_Mem_release(&context->theirs[part][pe]);
        free(context->theirs[part]);
    }
    MPI_Win_free(&context->win);
}

static struct shmem_context *of(shmem_ctx_t context) { return context == SHMEM_CTX_DEFAULT ? &all : context; }

static void share(Part *part) {
    char packed[FOMPI_MEM_BYTES];
    FOMPI_Mem_pack(part->mine, packed);
    part->packed = malloc((size_t)pes * FOMPI_MEM_BYTES);
    MPI_Allgather(packed, FOMPI_MEM_BYTES, MPI_BYTE, part->packed, FOMPI_MEM_BYTES, MPI_BYTE, MPI_COMM_WORLD);
}

int shmem_init_thread(int requested, int *provided) {
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                                 MPI_THREAD_MULTIPLE};
    const char *size = getenv("SHMEM_SYMMETRIC_SIZE");
    Part *heap = &parts[HEAP], *variables = &parts[VARIABLES];
    MPI_Info info;
    int is_there;
    MPI_Initialized(&is_there);
    starts_mpi = !is_there;
    if (starts_mpi) MPI_Init_thread(NULL, NULL, levels[requested], &is_there);
    MPI_Query_thread(&is_there);
    for (level = SHMEM_THREAD_MULTIPLE; levels[level] > is_there;) level--;
    if (provided) *provided = level;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &pes);
    if (!has_handles()) fail("shmem_init", "start it with fompirun: it needs libfompi");
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &all.win);
    begin(&all);
    heap->bytes = size ? strtoull(size, NULL, 0) : 64u << 20;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", STRING(ALIGNMENT));
    FOMPI_Mem_allocate((MPI_Aint)heap->bytes, info, all.win, &heap->base, &heap->mine);
    MPI_Info_free(&info);
    blocks = calloc(1, sizeof *blocks);
    blocks->bytes = heap->bytes;
    variables->base = __data_start;
    variables->bytes = (size_t)(_end - __data_start);
    FOMPI_Mem_expose(variables->base, (MPI_Aint)variables->bytes, MPI_INFO_NULL, all.win, &variables->mine);
    share(heap);
    share(variables);
    return 0;
}

void shmem_init(void) { shmem_init_thread(SHMEM_THREAD_SINGLE, NULL); }
void shmem_query_thread(int *provided) { *provided = level; }
void shmem_global_exit(int status) { MPI_Abort(MPI_COMM_WORLD, status); }
int shmem_my_pe(void) { return me; }
int shmem_n_pes(void) { return pes; }
int shmem_pe_accessible(int pe) { return pe >= 0 && pe < pes; }

void shmem_finalize(void) {
    shmem_barrier_all();
    while (all.next) shmem_ctx_destroy(all.next);
    for (Part *part = parts; part < parts + PARTS; part++) {
        FOMPI_Mem_withdraw(&part->mine);
        free(part->packed);
    }
    for (Block *block = blocks, *next; block; block = next) next = block->next, free(block);
    end(&all);
    if (starts_mpi) MPI_Finalize();
}

/* --- the heap ------------------------------------------------------------------------------------- */

void *shmem_align(size_t alignment, size_t bytes) {
    if (bytes == 0 || alignment > ALIGNMENT) return NULL;
    bytes = (bytes + 63) / 64 * 64;
    alignment = alignment < 64 ? 64 : alignment;
    for (Block *block = blocks; block; block = block->next) {
        size_t at = (block->at + alignment - 1) / alignment * alignment, before = at - block->at;
        if (block->is_used || before + bytes > block->bytes) continue;
        if (before > 0) { /* what comes before stays free */
            Block *used = malloc(sizeof *used);
            *used = (Block){at, block->bytes - before, 0, block->next};
            block->bytes = before, block->next = used;
            block = used;
        }
        if (bytes < block->bytes) {
            Block *rest = malloc(sizeof *rest);
            *rest = (Block){at + bytes, block->bytes - bytes, 0, block->next};
            block->bytes = bytes, block->next = rest;
        }
        block->is_used = 1;
        shmem_barrier_all();
        return parts[HEAP].base + at;
    }
    return NULL;
}

void *shmem_malloc(size_t bytes) { return shmem_align(1, bytes); }

void *shmem_calloc(size_t count, size_t bytes) {
    void *memory = shmem_malloc(count * bytes);
    if (memory) memset(memory, 0, count * bytes);
    shmem_barrier_all();
    return memory;
}

static Block *block_of(const void *memory) {
    size_t at = (size_t)((const char *)memory - parts[HEAP].base);
    for (Block *block = blocks; block; block = block->next)
        if (block->at == at && block->is_used) return block;
    fail("shmem_free", "no memory of the symmetric heap");
    return NULL;
}

void shmem_free(void *memory) {
    if (memory == NULL) return;
    shmem_barrier_all();
    block_of(memory)->is_used = 0;
    for (Block *block = blocks; block; block = block->next)
        for (Block *next = block->next; !block->is_used && next && !next->is_used; next = block->next) {
            block->bytes += next->bytes, block->next = next->next;
            free(next);
        }
}

void *shmem_realloc(void *memory, size_t bytes) {
    void *new = shmem_malloc(bytes);
    if (new && memory) {
        size_t before = block_of(memory)->bytes;
        memcpy(new, memory, before < bytes ? before : bytes);
    }
    if (new || bytes == 0) shmem_free(memory);
    return new;
}

/* --- access --------------------------------------------------------------------------------------- */

/* Finds the handle of a process for a symmetric object, and the displacement. */
static FOMPI_Mem locate(struct shmem_context *context, const void *object, int pe, MPI_Aint *disp) {
    for (Part *part = parts; part < parts + PARTS; part++) {
        size_t at = (size_t)((const char *)object - part->base);
        if (at >= part->bytes) continue;
        FOMPI_Mem *mem = &context->theirs[part - parts][pe], made = __atomic_load_n(mem, __ATOMIC_ACQUIRE), none = NULL;
        if (made == NULL) {
            FOMPI_Mem_unpack(part->packed + (size_t)pe * FOMPI_MEM_BYTES, context->win, &made);
            if (!__atomic_compare_exchange_n(mem, &none, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                FOMPI_Mem_release(&made), made = none;
        }
        *disp = (MPI_Aint)at;
        return made;
    }
    return NULL;
}

static FOMPI_Mem located(const char *call, shmem_ctx_t context, const void *object, int pe, MPI_Aint *disp) {
    FOMPI_Mem mem = shmem_pe_accessible(pe) ? locate(of(context), object, pe, disp) : NULL;
    if (mem == NULL) fail(call, "no symmetric object, or no such PE");
    return mem;
}

int shmem_addr_accessible(const void *object, int pe) {
    MPI_Aint disp;
    return shmem_pe_accessible(pe) && locate(&all, object, pe, &disp) != NULL;
}

void *shmem_ptr(const void *object, int pe) {
    MPI_Aint disp, size;
    FOMPI_Mem mem = shmem_pe_accessible(pe) ? locate(&all, object, pe, &disp) : NULL;
    char *base = NULL;
    if (pe == me) return mem ? (void *)object : NULL;
    if (mem) FOMPI_Mem_query(mem, NULL, &size, &base);
    return base ? base + disp : NULL;
}

void shmem_put_bytes(shmem_ctx_t context, void *to, const void *from, size_t bytes, int pe, int nbi) {
    MPI_Aint disp;
    if (bytes == 0) return;
    FOMPI_Mem mem = located("put", context, to, pe, &disp);
    FOMPI_Mem_put(from, (MPI_Count)bytes, MPI_BYTE, mem, disp, nbi ? 0 : FOMPI_BLOCKING);
}

void shmem_get_bytes(shmem_ctx_t context, void *to, const void *from, size_t bytes, int pe, int nbi) {
    MPI_Aint disp;
    if (bytes == 0) return;
    FOMPI_Mem mem = located("get", context, from, pe, &disp);
    FOMPI_Mem_get(to, (MPI_Count)bytes, MPI_BYTE, mem, disp, nbi ? 0 : FOMPI_BLOCKING);
}

static MPI_Datatype elements(size_t bytes, size_t count, ptrdiff_t stride) {
    MPI_Datatype one, all;
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &one);
    MPI_Type_create_hvector((int)count, 1, (MPI_Aint)(stride * (ptrdiff_t)bytes), one, &all);
    MPI_Type_commit(&all);
    MPI_Type_free(&one);
    return all;
}

/* One transfer with a datatype for each side. */
static void strided(shmem_ctx_t context, int kind, const void *here, const void *there, ptrdiff_t stride_here,
                    ptrdiff_t stride_there, size_t count, size_t bytes, int pe) {
    MPI_Aint disp;
    if (count == 0) return;
    FOMPI_Mem mem = located("strided transfer", context, there, pe, &disp);
    MPI_Datatype mine = elements(bytes, count, stride_here), theirs = elements(bytes, count, stride_there);
    fompi_buffers put = {.origin = here, .origin_count = 1, .origin_type = mine};
    fompi_buffers get = {.result = (void *)here, .result_count = 1, .result_type = mine};
    FOMPI_Xfer(kind, MPI_OP_NULL, kind == FOMPI_PUT ? &put : &get, mem, disp, 1, theirs, FOMPI_BLOCKING, NULL);
    MPI_Type_free(&mine);
    MPI_Type_free(&theirs);
}

void shmem_put_strided(shmem_ctx_t context, void *to, const void *from, ptrdiff_t stride_to, ptrdiff_t stride_from,
                       size_t count, size_t bytes, int pe) {
    strided(context, FOMPI_PUT, from, to, stride_from, stride_to, count, bytes, pe);
}

void shmem_get_strided(shmem_ctx_t context, void *to, const void *from, ptrdiff_t stride_to, ptrdiff_t stride_from,
                       size_t count, size_t bytes, int pe) {
    strided(context, FOMPI_GET, to, from, stride_to, stride_from, count, bytes, pe);
}

void shmem_atomic(shmem_ctx_t context, void *object, const void *value, void *before, MPI_Datatype type, MPI_Op op,
                  int pe) {
    MPI_Aint disp;
    FOMPI_Mem mem = located("atomic", context, object, pe, &disp);
    if (before)
        FOMPI_Mem_fetch_and_op(value, before, type, mem, disp, op, FOMPI_BLOCKING);
    else
        FOMPI_Mem_accumulate(value, 1, type, mem, disp, op, FOMPI_BLOCKING);
}

void shmem_swap_if(shmem_ctx_t context, void *object, const void *compare, const void *value, void *before,
                   MPI_Datatype type, int pe) {
    MPI_Aint disp;
    FOMPI_Mem mem = located("compare_swap", context, object, pe, &disp);
    FOMPI_Mem_compare_and_swap(value, compare, before, type, mem, disp, FOMPI_BLOCKING);
}

void shmem_signal(shmem_ctx_t context, uint64_t *signal, uint64_t value, int op, int pe) {
    MPI_Aint disp;
    FOMPI_Mem mem = located("put_signal", context, signal, pe, &disp);
    FOMPI_Mem_accumulate(&value, 1, MPI_UINT64_T, mem, disp, op == SHMEM_SIGNAL_ADD ? MPI_SUM : MPI_REPLACE,
                         FOMPI_ORDERED | FOMPI_BLOCKING);
}

/* --- order and completion ------------------------------------------------------------------------- */

void shmem_fence(void) { shmem_ctx_fence(SHMEM_CTX_DEFAULT); }
void shmem_quiet(void) { shmem_ctx_quiet(SHMEM_CTX_DEFAULT); }
void shmem_barrier_all(void) { FOMPI_Complete_collective(all.win); }

void shmem_sync_all(void) {
    MPI_Win_sync(all.win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(all.win);
}

/* A process that waits for its own memory lets others have the core. */
void shmem_pause(void) {
    MPI_Win_sync(all.win);
    sched_yield();
}

void shmem_ctx_fence(shmem_ctx_t context) { FOMPI_Win_order(FOMPI_ALL_RANKS, of(context)->win); }
void shmem_ctx_quiet(shmem_ctx_t context) { FOMPI_Complete(FOMPI_ALL_RANKS, of(context)->win); }

int shmem_ctx_create(long options, shmem_ctx_t *context) {
    (void)options;
    *context = malloc(sizeof **context);
    FOMPI_Win_dup(all.win, MPI_INFO_NULL, &(*context)->win);
    begin(*context);
    pthread_mutex_lock(&lock);
    (*context)->next = all.next, all.next = *context;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Completes what was sent. */
void shmem_ctx_destroy(shmem_ctx_t context) {
    struct shmem_context *before = &all;
    if (context == SHMEM_CTX_DEFAULT || context == SHMEM_CTX_INVALID) return;
    pthread_mutex_lock(&lock);
    while (before->next != context) before = before->next;
    before->next = context->next;
    pthread_mutex_unlock(&lock);
    end(context);
    free(context);
}
