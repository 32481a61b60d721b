/* A table of one-sided costs for whatever layer is loaded: rank 0 drives rank 1.
 *
 * usage: rma_probe [busy]
 *   idle   rank 1 waits in MPI_Barrier, so that a layer that needs the target's help gets it
 *   busy   rank 1 computes outside MPI for 0.5 s around each single operation of rank 0
 *
 * Prints `metric nanoseconds`, the median of 9 batches (busy: of 3 operations). The `limit` lines
 * are the same work done by hand with loads and stores on a shared window, the `process_vm` lines a
 * bare call of process_vm_readv or process_vm_writev on memory of the heap. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BATCHES = 9, BUSY_BATCHES = 3, BYTES = 4 << 20, TARGET = 1 };
static const double STALLED_NS = 3e8;

static int rank;
static MPI_Win win;
static MPI_Datatype vector; /* 512 doubles, every second one */
static char *local;
static uint64_t one = 1, zero, result;
static double one_double = 1;
static volatile double sink;

static double now(void) { return MPI_Wtime() * 1e9; }

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, ascending);
    return values[n / 2];
}

static void report(const char *kind, const char *name, double ns) {
    char metric[64];
    snprintf(metric, sizeof metric, "%s%s%s", kind, *kind ? "." : "", name);
    if (rank == 0) printf("%-34s %12.1f%s\n", metric, ns, ns > STALLED_NS ? "   STALLED" : "");
    fflush(stdout);
}

static void compute(double seconds) {
    double x = 1;
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        for (int i = 0; i < 1000; i++) x = x * 1.0000001 + 1e-9;
    sink = x;
}

/* Operations on rank 1, each complete at the target when it returns, unless its name says less. */
static void flush(void) { MPI_Win_flush(TARGET, win); }
static void put(int bytes) {
    MPI_Put(bytes == 8 ? (char *)&one : local, bytes, MPI_BYTE, TARGET, 8, bytes, MPI_BYTE, win);
}
static void get(int bytes) {
    MPI_Get(bytes == 8 ? (char *)&result : local, bytes, MPI_BYTE, TARGET, 8, bytes, MPI_BYTE, win);
}
static void put8(void) { put(8), flush(); }
static void get8(void) { get(8), flush(); }
static void put4k(void) { put(4096), flush(); }
static void put1m(void) { put(1 << 20), flush(); }
static void get1m(void) { get(1 << 20), flush(); }
static void put8x1000(void) {
    for (int k = 0; k < 1000; k++)
        MPI_Put(&one, 8, MPI_BYTE, TARGET, 8 * (k & 511), 8, MPI_BYTE, win);
    flush();
}
static void fetch_and_op(void) {
    MPI_Fetch_and_op(&one, &result, MPI_INT64_T, TARGET, 8, MPI_SUM, win), flush();
}
static void compare_and_swap(void) {
    MPI_Compare_and_swap(&one, &zero, &result, MPI_INT64_T, TARGET, 8, win), flush();
}
static void accumulate1(void) {
    MPI_Accumulate(&one_double, 1, MPI_DOUBLE, TARGET, 8, 1, MPI_DOUBLE, MPI_SUM, win), flush();
}
static void accumulate1k(void) {
    MPI_Accumulate(local, 1024, MPI_DOUBLE, TARGET, 0, 1024, MPI_DOUBLE, MPI_SUM, win), flush();
}
static void get_accumulate1k(void) {
    MPI_Get_accumulate(local, 1024, MPI_DOUBLE, local + 65536, 1024, MPI_DOUBLE, TARGET, 0, 1024,
                       MPI_DOUBLE, MPI_SUM, win);
    flush();
}
static void put_vector(void) { MPI_Put(local, 1, vector, TARGET, 0, 1, vector, win), flush(); }
static void rput8(void) {
    MPI_Request request;
    MPI_Rput(&one, 8, MPI_BYTE, TARGET, 8, 8, MPI_BYTE, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void rget8(void) {
    MPI_Request request;
    MPI_Rget(&result, 8, MPI_BYTE, TARGET, 8, 8, MPI_BYTE, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void sync_only(void) { MPI_Win_sync(win); }
static void nothing(void) {}
static void lock_exclusive(void) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win), MPI_Win_unlock(TARGET, win);
}
static void lock_shared(void) {
    MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, win), MPI_Win_unlock(TARGET, win);
}
static void lock_put8(void) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win), put(8), MPI_Win_unlock(TARGET, win);
}
static void lock_all(void) { MPI_Win_lock_all(0, win), MPI_Win_unlock_all(win); }

typedef struct {
    const char *name;
    void (*call)(void);
    int times;
} Metric;

/* Inside of lock_all. */
static const Metric transfers[] = {
    {"put8+flush", put8, 20000}, {"get8+flush", get8, 20000}, {"put8x1000+flush", put8x1000, 20},
    {"put4k+flush", put4k, 5000}, {"put1M+flush", put1m, 50}, {"get1M+flush", get1m, 50},
    {"fop_sum_i64+flush", fetch_and_op, 20000}, {"cas_i64+flush", compare_and_swap, 20000},
    {"acc_sum_1dbl+flush", accumulate1, 20000}, {"acc_sum_1k_dbl+flush", accumulate1k, 2000},
    {"getacc_sum_1k_dbl+flush", get_accumulate1k, 2000}, {"put_vec512dbl+flush", put_vector, 2000},
    {"rput8+wait", rput8, 10000}, {"rget8+wait", rget8, 10000}, {"flush_only", flush, 20000},
    {"sync_only", sync_only, 20000}, {NULL, NULL, 0}};
static const Metric locks[] = {
    {"lock_excl/unlock", lock_exclusive, 5000}, {"lock_shrd/unlock", lock_shared, 5000},
    {"lock_excl/put8/unlock", lock_put8, 5000}, {"lock_all/unlock_all", lock_all, 5000},
    {NULL, NULL, 0}};

/* What one rank calls alone: a batch warms up and finds how many calls fit into 20 ms. */
static int affordable(const Metric *metric) {
    double end = now() + 2e7;
    int times = 0;
    while (times < metric->times && now() < end) metric->call(), times++;
    return times;
}

/* What ranks call together: as many calls on each, after a batch that warms up. */
static int together(const Metric *metric) {
    for (int i = 0; i < metric->times; i++) metric->call();
    return metric->times;
}

static void measure(const char *kind, const Metric *metric, int (*prepare)(const Metric *)) {
    double ns[BATCHES];
    int times = prepare(metric);
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = now();
        for (int i = 0; i < times; i++) metric->call();
        ns[batch] = (now() - start) / times;
    }
    report(kind, metric->name, median(ns, BATCHES));
}

static void passive(const char *kind) {
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        for (const Metric *m = transfers; m->name; m++) measure(kind, m, affordable);
        MPI_Win_unlock_all(win);
        for (const Metric *m = locks; m->name; m++) measure(kind, m, affordable);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* True passive target: one operation in its own epoch while rank 1 computes. */
static void busy_target(const char *kind) {
    static const struct {
        const char *name;
        void (*call)(void);
        int lock; /* a lock type; 0: lock_all */
    } tests[] = {{"put8", put8, MPI_LOCK_SHARED}, {"get8", get8, MPI_LOCK_SHARED},
                 {"fop_i64", fetch_and_op, MPI_LOCK_SHARED},
                 {"acc_1k_dbl", accumulate1k, MPI_LOCK_SHARED},
                 {"put_vec512dbl", put_vector, MPI_LOCK_SHARED},
                 {"put1M", put1m, MPI_LOCK_SHARED},
                 {"lock_excl", nothing, MPI_LOCK_EXCLUSIVE}, {"lock_all", nothing, 0}};
    for (size_t k = 0; k < sizeof tests / sizeof *tests; k++) {
        double ns[BUSY_BATCHES] = {0};
        for (int batch = 0; batch < BUSY_BATCHES; batch++) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == TARGET) compute(0.5);
            if (rank != 0) continue;
            compute(0.05); /* by now the target is outside of MPI */
            double start = now();
            if (tests[k].lock) MPI_Win_lock(tests[k].lock, TARGET, 0, win);
            else MPI_Win_lock_all(0, win);
            tests[k].call();
            if (tests[k].lock) MPI_Win_unlock(TARGET, win);
            else MPI_Win_unlock_all(win);
            ns[batch] = now() - start;
        }
        report(kind, tests[k].name, median(ns, BUSY_BATCHES));
    }
}

/* Both ranks call these together. */
static MPI_Group others;
static void fence(void) { MPI_Win_fence(0, win); }
static void fence_put8(void) {
    if (rank == 0) put(8);
    MPI_Win_fence(0, win);
}
static void post_start_put8(void) {
    if (rank > 1) return;
    MPI_Win_post(others, 0, win), MPI_Win_start(others, 0, win);
    MPI_Put(&one, 8, MPI_BYTE, 1 - rank, 8, 8, MPI_BYTE, win);
    MPI_Win_complete(win), MPI_Win_wait(win);
}

static void active(const char *kind) {
    static const Metric tests[] = {{"fence", fence, 500}, {"fence+put8", fence_put8, 500},
                                   {"pscw+put8", post_start_put8, 500}, {NULL, NULL, 0}};
    int peer = 1 - rank;
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, rank < 2, &peer, &others);
    for (const Metric *m = tests; m->name; m++) {
        int fences = m->call != post_start_put8;
        if (fences) MPI_Win_fence(0, win);
        measure(kind, m, together);
        if (fences) MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank < 2) MPI_Group_free(&others);
    MPI_Group_free(&world);
}

/* The limits, by hand on the target's part of a shared window. */
static char *shared;
static uint64_t *word(void) { return (uint64_t *)(shared + 64); }
static void hand_put8(void) { *(volatile uint64_t *)word() = 1, __sync_synchronize(); }
static void hand_get8(void) { result += *(volatile uint64_t *)word(); }
static void hand_put4k(void) { memcpy(shared, local, 4096), __sync_synchronize(); }
static void hand_put1m(void) { memcpy(shared, local, 1 << 20), __sync_synchronize(); }
static void hand_get1m(void) { memcpy(local, shared, 1 << 20), __sync_synchronize(); }
static void hand_fetch_and_op(void) { result += __sync_fetch_and_add(word(), 1); }
static void hand_compare_and_swap(void) {
    result += __sync_val_compare_and_swap(word(), result, 1);
}
static void hand_accumulate1k(void) {
    for (int k = 0; k < 1024; k++) ((double *)shared)[k] += ((double *)local)[k];
    __sync_synchronize();
}
static void hand_put_vector(void) {
    for (int k = 0; k < 512; k++) ((double *)shared)[2 * k] = ((double *)local)[2 * k];
    __sync_synchronize();
}
static void hand_lock(void) {
    uint64_t unlocked = 0;
    while (!__atomic_compare_exchange_n(word(), &unlocked, 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
        unlocked = 0;
    __atomic_store_n(word(), 0, __ATOMIC_RELEASE);
}

/* The limits of memory that the target cannot share: bare calls of the system. */
static char *user;
static int64_t target_memory[2]; /* process and address */
static void hand_vm(size_t bytes, int puts) {
    struct iovec here = {local, bytes}, there = {(char *)(intptr_t)target_memory[1] + 8, bytes};
    ssize_t moved = puts ? process_vm_writev((pid_t)target_memory[0], &here, 1, &there, 1, 0)
                         : process_vm_readv((pid_t)target_memory[0], &here, 1, &there, 1, 0);
    if (moved != (ssize_t)bytes) sink = 0;
}
static void vm_put8(void) { hand_vm(8, 1); }
static void vm_get8(void) { hand_vm(8, 0); }
static void vm_put4k(void) { hand_vm(4096, 1); }
static void vm_put1m(void) { hand_vm(1 << 20, 1); }
static void vm_get1m(void) { hand_vm(1 << 20, 0); }

static void bare_calls(void) {
    static const Metric tests[] = {
        {"put8", vm_put8, 5000}, {"get8", vm_get8, 5000}, {"put4k", vm_put4k, 2000},
        {"put1M", vm_put1m, 50}, {"get1M", vm_get1m, 50}, {NULL, NULL, 0}};
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    target_memory[0] = getpid(), target_memory[1] = (intptr_t)user;
    MPI_Bcast(target_memory, 2, MPI_INT64_T, TARGET, MPI_COMM_WORLD);
    for (const Metric *m = tests; m->name && rank == 0; m++) measure("process_vm", m, affordable);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void limits(void) {
    static const Metric tests[] = {
        {"put8+flush", hand_put8, 20000}, {"get8+flush", hand_get8, 20000},
        {"put4k+flush", hand_put4k, 5000}, {"put1M+flush", hand_put1m, 50},
        {"get1M+flush", hand_get1m, 50}, {"fop_sum_i64+flush", hand_fetch_and_op, 20000},
        {"cas_i64+flush", hand_compare_and_swap, 20000},
        {"acc_sum_1k_dbl+flush", hand_accumulate1k, 2000},
        {"put_vec512dbl+flush", hand_put_vector, 2000}, {"lock_excl/unlock", hand_lock, 5000},
        {NULL, NULL, 0}};
    MPI_Aint bytes;
    int disp_unit;
    char *base;
    MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    memset(base, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_shared_query(win, TARGET, &bytes, &disp_unit, &shared);
    for (const Metric *m = tests; m->name && rank == 0; m++) measure("limit", m, affordable);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

static void window(const char *kind, int busy) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (busy) {
        busy_target(kind);
    } else {
        passive(kind);
        active(kind);
    }
    MPI_Win_free(&win);
}

/* All ranks make and free a window together. */
static void create_and_free(void) {
    MPI_Win_create(user, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_Win_free(&win);
}
static void allocate_and_free(void) {
    char *base;
    MPI_Win_allocate(65536, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    static const Metric making[] = {{"win_create+free", create_and_free, 20},
                                    {"win_allocate+free", allocate_and_free, 20}};
    char *base, *allocated;
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2) {
        fprintf(stderr, "rma_probe: needs 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int busy = argc > 1 && !strcmp(argv[1], "busy");
    alarm(240);
    local = calloc(1, BYTES);
    user = calloc(1, BYTES);
    MPI_Type_vector(512, 1, 2, MPI_DOUBLE, &vector);
    MPI_Type_commit(&vector);
    if (!busy) limits(), bare_calls();
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    memset(base, 0, BYTES);
    window(busy ? "busy.allocate" : "allocate", busy);
    MPI_Win_create(user, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    window(busy ? "busy.create" : "create", busy);
    MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &allocated);
    memset(allocated, 0, BYTES);
    MPI_Win_create(allocated, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    window(busy ? "busy.create_alloc_mem" : "create_alloc_mem", busy);
    MPI_Free_mem(allocated);
    for (int k = 0; k < 2 && !busy; k++) measure("", &making[k], together);
    MPI_Type_free(&vector);
    MPI_Finalize();
    free(local);
    free(user);
    return 0;
}
