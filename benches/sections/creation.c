/* What it takes to make and to free a window of each kind. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

typedef enum { ALLOCATE, SHARED, CREATE, ALLOC_MEM_CREATE, DYNAMIC, KINDS } Kind;
static const char *const made[KINDS] = {"win_allocate", "win_allocate_shared", "win_create",
                                        "alloc_mem_win_create", "win_create_dynamic"};
static const char *const freed[KINDS] = {"win_allocate_free", "win_allocate_shared_free",
                                         "win_create_free", "alloc_mem_win_create_free",
                                         "win_create_dynamic_free"};

static char *own, *base;
static MPI_Comm comm; /* that the window is of */
static MPI_Win win;
static MPI_Aint start;

static void make(Kind kind, long bytes) {
    MPI_Aint length = bytes;
    start = 0;
    base = own;
    if (kind == ALLOCATE)
        MPI_Win_allocate(length, 1, MPI_INFO_NULL, comm, &base, &win);
    if (kind == SHARED)
        MPI_Win_allocate_shared(length, 1, MPI_INFO_NULL, comm, &base, &win);
    if (kind == ALLOC_MEM_CREATE) MPI_Alloc_mem(length, MPI_INFO_NULL, &base);
    if (kind == CREATE || kind == ALLOC_MEM_CREATE)
        MPI_Win_create(base, length, 1, MPI_INFO_NULL, comm, &win);
    if (kind == DYNAMIC) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
        MPI_Win_attach(win, base, length);
    }
}
static void release(Kind kind) {
    if (kind == DYNAMIC) MPI_Win_detach(win, base);
    MPI_Win_free(&win);
    if (kind == ALLOC_MEM_CREATE) MPI_Free_mem(base);
}

/* Every rank puts its number at the start and at the end of the next rank's window. */
static int works(Kind kind, long bytes) {
    int next = (job.rank + 1) % job.ranks, previous = (job.rank + job.ranks - 1) % job.ranks;
    MPI_Aint there, ends[2];
    char number = (char)(job.rank + 1);
    make(kind, bytes);
    memset(base, 0, (size_t)bytes);
    if (kind == DYNAMIC) MPI_Get_address(base, &start);
    MPI_Sendrecv(&start, 1, MPI_AINT, previous, 1, &there, 1, MPI_AINT, next, 1, job.comm,
                 MPI_STATUS_IGNORE);
    ends[0] = there, ends[1] = there + bytes - 1;
    MPI_Win_fence(0, win);
    for (int k = 0; k < 2; k++) MPI_Put(&number, 1, MPI_BYTE, next, ends[k], 1, MPI_BYTE, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    int is_right = base[0] == (char)(previous + 1) && base[bytes - 1] == (char)(previous + 1);
    release(kind);
    return is_right;
}

static void point(Kind kind, long bytes) {
    static Series making, freeing;
    comm = job.comm;
    own = aligned_alloc(4096, ((size_t)bytes + 4095) / 4096 * 4096);
    memset(own, 0, (size_t)bytes);
    int is_verified = works(kind, bytes);
    double begin = now_ns();
    long runs = 0;
    for (; goes_on(runs, begin); runs++) {
        double times[3];
        times[0] = now_ns();
        make(kind, bytes);
        times[1] = now_ns();
        making.values[runs] = times[1] - times[0];
        MPI_Barrier(job.comm);
        times[1] = now_ns();
        release(kind);
        times[2] = now_ns();
        freeing.values[runs] = times[2] - times[1];
    }
    making.runs = freeing.runs = runs;
    making.batch = freeing.batch = 1;
    combine_series(&making);
    combine_series(&freeing);
    report(made[kind], "bytes", bytes, &making, is_verified);
    report(freed[kind], "bytes", bytes, &freeing, is_verified);
    free(own);
}
/* The first window of a communicator, for which a layer may have to make more than for later ones. */
static void first_point(const char *name, Kind kind, long bytes) {
    static Series making;
    own = calloc(1, (size_t)bytes);
    int is_verified = 1;
    double begin = now_ns();
    long runs = 0;
    for (; goes_on(runs, begin); runs++) {
        MPI_Comm_dup(job.comm, &comm);
        MPI_Barrier(comm);
        double start_ns = now_ns();
        make(kind, bytes);
        making.values[runs] = now_ns() - start_ns;
        release(kind);
        if (runs == 0) is_verified = works(kind, bytes);
        MPI_Comm_free(&comm);
    }
    making.runs = runs;
    making.batch = 1;
    combine_series(&making);
    report(name, "bytes", bytes, &making, is_verified);
    free(own);
}
static void first_allocate(long bytes) { first_point("first_win_allocate", ALLOCATE, bytes); }
static void first_create(long bytes) { first_point("first_win_create", CREATE, bytes); }

static void allocate(long bytes) { point(ALLOCATE, bytes); }
static void shared(long bytes) {
    if (job.is_one_node) point(SHARED, bytes);
}
static void create(long bytes) { point(CREATE, bytes); }
static void alloc_mem_create(long bytes) { point(ALLOC_MEM_CREATE, bytes); }
static void dynamic(long bytes) { point(DYNAMIC, bytes); }

#define ROW(name, what, call)                                                                    \
    {                                                                                            \
        name, "bytes", "4096,65536,1048576,16777216", what, NO_WINDOW, 0, 1, {0}, NULL, NULL,    \
            call                                                                                 \
    }

const Measurement creation[] = {
    ROW("win_allocate", "MPI_Win_allocate; MPI_Win_free as win_allocate_free", allocate),
    ROW("win_allocate_shared", "the same of a shared window, on one node", shared),
    ROW("win_create", "MPI_Win_create over memory of malloc; its free", create),
    ROW("alloc_mem_win_create", "MPI_Alloc_mem and MPI_Win_create; its free", alloc_mem_create),
    ROW("win_create_dynamic", "MPI_Win_create_dynamic and MPI_Win_attach; its free", dynamic),
    ROW("first_win_allocate", "MPI_Win_allocate on a new communicator", first_allocate),
    ROW("first_win_create", "MPI_Win_create on a new communicator", first_create),
    {0}};
