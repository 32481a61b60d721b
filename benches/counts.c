/* Runs the calls of the data path N and 11 N times each between two dumps of callgrind, for
 * scripts/dev/counts: a tenth of the difference is N calls, free of everything that happens only once.
 * The one rank is its own target: the path is that to any target whose memory is mapped. All calls run
 * on an allocated window, and on one that MPI_Win_create makes of memory of MPI_Alloc_mem. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TARGET = 0 };
#include "counts_calls.h"
#include "../include/fompi_notify.h"
#include "../include/fompi_rma.h"

#pragma weak FOMPI_Win_set_num_notify
#pragma weak FOMPI_Put_notify
#pragma weak FOMPI_Win_get_notify_value
#pragma weak FOMPI_Win_wait_notify
#pragma weak FOMPI_Mem_allocate
#pragma weak FOMPI_Mem_put
#pragma weak FOMPI_Mem_get
#pragma weak FOMPI_Mem_accumulate
#pragma weak FOMPI_Mem_fetch_and_op
#pragma weak FOMPI_Mem_compare_and_swap
#pragma weak FOMPI_Mem_withdraw

static int64_t one = 1, result;

static void put(void) { MPI_Put(&one, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, win); }
static void put_notify(void) {
    FOMPI_Put_notify(&one, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, 0, win);
}
static void notify_value(void) {
    MPI_Count value;
    FOMPI_Win_get_notify_value(win, 0, &value);
}
static void wait_notify(void) { FOMPI_Win_wait_notify(win, 0, 0); }
static void get(void) { MPI_Get(&result, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, win); }
static MPI_Request request;
static void rput_wait(void) {
    MPI_Rput(&one, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void rget_wait(void) {
    MPI_Rget(&result, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static MPI_Datatype vector;
static double doubles[512];
static void put_vector(void) { MPI_Put(doubles, 512, MPI_DOUBLE, 0, 0, 1, vector, win); }
static void fetch_and_op(void) { MPI_Fetch_and_op(&one, &result, MPI_INT64_T, 0, 8, MPI_SUM, win); }
static void fetch_and_op_replace(void) {
    MPI_Fetch_and_op(&one, &result, MPI_INT64_T, 0, 8, MPI_REPLACE, win);
}
static int64_t other = 2;
static void compare_and_swap(void) {
    MPI_Compare_and_swap(&one, &other, &result, MPI_INT64_T, 0, 8, win);
}
static void accumulate1(void) {
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, MPI_SUM, win);
}
static void accumulate1_double(void) {
    MPI_Accumulate(doubles, 1, MPI_DOUBLE, 0, 16, 1, MPI_DOUBLE, MPI_SUM, win);
}
static double results[512];
static void accumulate2(void) {
    MPI_Accumulate(doubles, 2, MPI_DOUBLE, 0, 16, 2, MPI_DOUBLE, MPI_SUM, win);
}
/* Kernels for AVX-512 are not counted: valgrind has no such instructions. */
static void accumulate512(void) {
    MPI_Accumulate(doubles, 512, MPI_DOUBLE, 0, 0, 512, MPI_DOUBLE, MPI_SUM, win);
}
static void get_accumulate512(void) {
    MPI_Get_accumulate(doubles, 512, MPI_DOUBLE, results, 512, MPI_DOUBLE, 0, 0, 512, MPI_DOUBLE,
                       MPI_SUM, win);
}
static void get_accumulate1(void) {
    MPI_Get_accumulate(&one, 1, MPI_INT64_T, &result, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, MPI_SUM, win);
}
static void put4k(void) { MPI_Put(doubles, 512, MPI_DOUBLE, 0, 0, 512, MPI_DOUBLE, win); }
static void flush_local(void) { MPI_Win_flush_local(0, win); }
static void fence(void) { MPI_Win_fence(0, win); }
static MPI_Group self;
static void post_start_put_complete_wait(void) {
    MPI_Win_post(self, 0, win);
    MPI_Win_start(self, 0, win);
    put();
    MPI_Win_complete(win);
    MPI_Win_wait(win);
}

static const struct {
    const char *name;
    void (*call)(void);
    int locked; /* called inside of lock_all */
} calls[] = {
    {"put8", put, 1},
    {"put8_notify", put_notify, 1},
    {"notify_value", notify_value, 1},
    {"wait_notify", wait_notify, 1},
    {"get8", get, 1},
    {"rput8_wait", rput_wait, 1},
    {"rget8_wait", rget_wait, 1},
    {"put4k", put4k, 1},
    {"put_vector512", put_vector, 1},
    {"flush", flush, 1},
    {"flush_all", flush_all, 1},
    {"flush_local", flush_local, 1},
    {"sync", synchronize, 1},
    {"fence", fence, 0},
    {"post_start_put_complete_wait", post_start_put_complete_wait, 0},
    {"fetch_and_op", fetch_and_op, 1},
    {"fetch_and_op_replace", fetch_and_op_replace, 1},
    {"compare_and_swap", compare_and_swap, 1},
    {"accumulate1", accumulate1, 1},
    {"accumulate1_double", accumulate1_double, 1},
    {"accumulate2_double", accumulate2, 1},
    {"accumulate512_double", accumulate512, 1},
    {"get_accumulate1", get_accumulate1, 1},
    {"get_accumulate512_double", get_accumulate512, 1},
    {"lock_unlock_exclusive", lock_exclusive, 0},
    {"lock_unlock_shared", lock_shared, 0},
    {"lock_unlock_all", lock_all, 0},
};

/* Counts each call on a window of its own: it prepares the window for itself. */
static void count_all(const char *memory, int is_created, long n) {
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        char *base;
        if (is_created) {
            MPI_Alloc_mem(8192, MPI_INFO_NULL, &base);
            MPI_Win_create(base, 8192, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        } else {
            MPI_Win_allocate(8192, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        }
        memset(base, 0, 8192);
        if (strstr(calls[k].name, "notify") != NULL) FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 1);
        if (calls[k].locked) MPI_Win_lock_all(0, win);
        count_twice(calls[k].name, memory, calls[k].call, n);
        if (calls[k].locked) MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
        if (is_created) MPI_Free_mem(base);
    }
}

static FOMPI_Mem mem;
static void mem_put(void) { FOMPI_Mem_put(&one, 1, MPI_INT64_T, mem, 8, 0); }
static void mem_get(void) { FOMPI_Mem_get(&result, 1, MPI_INT64_T, mem, 8, FOMPI_BLOCKING); }
static void mem_fetch_and_op(void) {
    FOMPI_Mem_fetch_and_op(&one, &result, MPI_INT64_T, mem, 8, MPI_SUM, FOMPI_BLOCKING);
}
static void mem_accumulate1(void) { FOMPI_Mem_accumulate(&one, 1, MPI_INT64_T, mem, 8, MPI_SUM, 0); }
static void mem_compare_and_swap(void) {
    FOMPI_Mem_compare_and_swap(&one, &other, &result, MPI_INT64_T, mem, 8, FOMPI_BLOCKING);
}
static void mem_put4k(void) { FOMPI_Mem_put(doubles, 512, MPI_DOUBLE, mem, 0, 0); }

/* Transfers by a memory handle, which need no epoch. */
static void count_handles(long n) {
    void *base;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    FOMPI_Mem_allocate(8192, MPI_INFO_NULL, win, &base, &mem);
    count_twice("mem_put8", "", mem_put, n);
    count_twice("mem_get8", "", mem_get, n);
    count_twice("mem_put4k", "", mem_put4k, n);
    count_twice("mem_accumulate1", "", mem_accumulate1, n);
    count_twice("mem_fetch_and_op", "", mem_fetch_and_op, n);
    count_twice("mem_compare_and_swap", "", mem_compare_and_swap, n);
    FOMPI_Mem_withdraw(&mem);
    MPI_Free_mem(base);
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1000;
    MPI_Init(&argc, &argv);
    MPI_Type_vector(512, 1, 2, MPI_DOUBLE, &vector);
    MPI_Type_commit(&vector);
    MPI_Comm_group(MPI_COMM_SELF, &self);
    CALLGRIND_START_INSTRUMENTATION;
    count_all("", 0, n);
    count_all("_alloc_mem", 1, n);
    count_handles(n);
    CALLGRIND_STOP_INSTRUMENTATION;
    MPI_Type_free(&vector);
    MPI_Group_free(&self);
    MPI_Finalize();
    return 0;
}
