/* Memory that a layer takes of each process: for windows, for waiting locks, for operations that
 * are not complete. It is the growth of the pages in memory, the most of all ranks; what the
 * program itself allocates it touches before. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOWS_MAX = 10000, WINDOW_BYTES = 4096 };
static Series series;

/* Bytes of this process in memory, without the pages of files. */
static double resident(void) {
    long kib, sum = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "RssAnon: %ld", &kib) == 1 || sscanf(line, "RssShmem: %ld", &kib) == 1)
            sum += kib;
    if (status) fclose(status);
    return 1024.0 * (double)sum;
}

static void report_bytes(const char *name, const char *parameter, long value, double bytes,
                         int is_verified) {
    series.values[0] = bytes > 0 ? bytes : 0;
    series.runs = series.batch = 1;
    combine_series(&series);
    report_in("bytes", name, parameter, value, &series, is_verified);
}

static int put_arrives(MPI_Win win, const char *base) {
    int next = (job.rank + 1) % job.ranks;
    char one = 1;
    MPI_Win_fence(0, win);
    MPI_Put(&one, 1, MPI_BYTE, next, 0, 1, MPI_BYTE, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    return *base == 1;
}

/* The growth by a window, while many windows exist. The pages of its user, which it
 * touches in allocated windows only if the layer does, count as the layer's. */
static void of_windows(const char *name, long count, int is_allocated, int has_own_unit) {
    static MPI_Win wins[WINDOWS_MAX];
    static char *bases[WINDOWS_MAX];
    int unit = has_own_unit ? 1 << job.rank % 8 : 1, is_verified = 1;
    if (count < 1 || count > WINDOWS_MAX) return;
    char *own = calloc((size_t)count, WINDOW_BYTES);
    memset(own, 0, (size_t)count * WINDOW_BYTES);
    memset(wins, 0, sizeof wins), memset(bases, 0, sizeof bases);
    MPI_Barrier(job.comm);
    double before = resident();
    for (long k = 0; k < count; k++) {
        bases[k] = own + k * WINDOW_BYTES;
        if (is_allocated)
            MPI_Win_allocate(WINDOW_BYTES, unit, MPI_INFO_NULL, job.comm, &bases[k],
                             &wins[k]);
        else
            MPI_Win_create(bases[k], WINDOW_BYTES, unit, MPI_INFO_NULL, job.comm, &wins[k]);
    }
    double bytes = (resident() - before) / (double)count;
    for (long k = 0; k < count; k++) {
        if (k % 16 == 0) is_verified &= put_arrives(wins[k], bases[k]);
        MPI_Win_free(&wins[k]);
    }
    free(own);
    report_bytes(name, "windows", count, bytes, is_verified);
}
static void create(long count) { of_windows("memory_create", count, 0, 0); }
static void create_units(long count) { of_windows("memory_create_units", count, 0, 1); }
static void allocate(long count) { of_windows("memory_allocate", count, 1, 0); }
static void allocate_units(long count) { of_windows("memory_allocate_units", count, 1, 1); }

/* Every rank puts single bytes to every rank, its own among them. */
static void put_bytes(long operations) {
    static const char one = 1;
    for (long k = 0; k < operations; k++)
        for (int target = 0; target < job.ranks; target++)
            MPI_Put(&one, 1, MPI_BYTE, target, wide_at(target, (size_t)job.rank), 1, MPI_BYTE,
                    wide.win);
}
static int are_there(void) {
    for (int from = 0; from < job.ranks; from++)
        if (wide.base[from] != 1) return 0;
    return 1;
}

/* The growth at any rank while all lock rank 0's part one after the other, again and again. */
static void locks_point(long value) {
    enum { TURNS = 200 };
    memset(wide.base, 0, wide.bytes);
    MPI_Barrier(job.comm);
    double before = resident();
    static const char one = 1;
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, wide.win);
        MPI_Put(&one, 1, MPI_BYTE, 0, wide_at(0, (size_t)job.rank), 1, MPI_BYTE, wide.win);
        MPI_Win_unlock(0, wide.win);
    }
    double bytes = resident() - before;
    MPI_Barrier(job.comm);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, job.rank, 0, wide.win);
    int is_verified = job.rank != 0 || are_there();
    MPI_Win_unlock(job.rank, wide.win);
    report_bytes("memory_locks", "ranks", value, bytes, is_verified);
}

/* The growth by operations that no flush has completed. */
static void operations_point(long operations) {
    memset(wide.base, 0, wide.bytes);
    MPI_Win_sync(wide.win);
    MPI_Barrier(job.comm);
    double before = resident();
    put_bytes(operations);
    double bytes = resident() - before;
    MPI_Win_flush_all(wide.win);
    MPI_Barrier(job.comm);
    MPI_Win_sync(wide.win);
    report_bytes("memory_operations", "operations", operations, bytes, are_there());
}

/* The growth after the operations of each of four epochs, and after the fence that completes them:
 * moments 1 and 2 are of the first epoch. */
static void epochs_point(long operations) {
    enum { EPOCHS = 4 };
    double bytes[2 * EPOCHS];
    int is_verified = 1;
    double before = resident();
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        memset(wide.base, 0, wide.bytes);
        MPI_Win_fence(0, wide.win);
        put_bytes(operations);
        bytes[2 * epoch] = resident() - before;
        MPI_Win_fence(0, wide.win);
        bytes[2 * epoch + 1] = resident() - before;
        is_verified &= are_there();
    }
    for (int moment = 0; moment < 2 * EPOCHS; moment++)
        report_bytes("memory_epochs", "moment", moment + 1, bytes[moment], is_verified);
}

#define OF_WINDOWS(name, what)                                                                   \
    {                                                                                            \
        "memory_" #name, "windows", "100", what, NO_WINDOW, 0, 1, {0}, NULL, NULL, name          \
    }

const Measurement memories[] = {
    OF_WINDOWS(create, "bytes of a process for a window of MPI_Win_create"),
    OF_WINDOWS(create_units, "the same, each rank with another disp_unit"),
    OF_WINDOWS(allocate, "bytes of a process for a window of MPI_Win_allocate"),
    OF_WINDOWS(allocate_units, "the same, each rank with another disp_unit"),
    {"memory_locks", "ranks", NULL, "bytes of a process while all ranks lock rank 0", NO_EPOCH,
     4096, 1, {0}, NULL, NULL, locks_point},
    {"memory_operations", "operations", "1,10,100,1000,10000,100000,1000000",
     "bytes of a process for puts of a byte to each rank before a flush", IN_LOCK_ALL, 4096, 1,
     {0}, NULL, NULL, operations_point},
    {"memory_epochs", "operations", "65536",
     "bytes of a process after the puts and after the fence of each of 4 epochs", IN_FENCES, 4096,
     1, {0}, NULL, NULL, epochs_point},
    {0}};
