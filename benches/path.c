/* One warm call between two switches of callgrind's collection, for scripts/dev/path: by rank 0 on the
 * last rank, which is itself in a job of one rank. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

static MPI_Win win;
static int64_t one = 1, result;
static int target;

static void put(void) { MPI_Put(&one, 1, MPI_INT64_T, target, 8, 1, MPI_INT64_T, win); }
static void get(void) { MPI_Get(&result, 1, MPI_INT64_T, target, 8, 1, MPI_INT64_T, win); }
static void fetch_and_op(void) {
    MPI_Fetch_and_op(&one, &result, MPI_INT64_T, target, 8, MPI_SUM, win);
}

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {{"put", put}, {"get", get}, {"fetch_and_op", fetch_and_op}};

static void measure(void (*call)(void)) {
    for (int round = 0; round < 3; round++) {
        MPI_Win_flush(target, win);
        for (int i = 0; i < 10; i++) call();
    }
    CALLGRIND_TOGGLE_COLLECT;
    call();
    CALLGRIND_TOGGLE_COLLECT;
    MPI_Win_flush(target, win);
}

int main(int argc, char **argv) {
    int rank, size;
    char *base;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    target = size - 1;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    memset(base, 0, 64);
    MPI_Win_lock_all(0, win);
    for (size_t k = 0; rank == 0 && argc > 1 && k < sizeof calls / sizeof *calls; k++) {
        if (strcmp(calls[k].name, argv[1]) == 0) measure(calls[k].call);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
