/* What one-sided operations cost between nodes, and whether the target has to help: rank 0 drives
 * the last rank.
 *
 * usage: rma_across_nodes [allocate|create|dynamic [SECONDS]]
 *   waits     the target waits in MPI_Barrier
 *   computes  it computes and calls nothing of MPI for SECONDS (default 2)
 *   probes    it computes and calls MPI_Iprobe every millisecond
 *
 * Prints, for each of them, what an operation with its flush takes: the first one, then the 10th,
 * 50th and 99th hundredth, in microseconds, and how many there were. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMES_MAX = 200000, BULK = 65536, PING_PONGS = 2000, CELL = 8, BULK_AT = 64 };
enum operation { PUT, GET, FETCH, SWAP, PUT_BULK, OPERATIONS };
enum phase { WAITS, COMPUTES, PROBES };

static const char *const operation_names[] = {"put 8", "get 8", "fetch-and-op", "compare-and-swap",
                                              "put 64 KiB"};
static const char *const phase_names[] = {"waits", "computes", "probes"};
static const double PROBE_SECONDS = 1e-3, WAIT_SECONDS = 0.4, START_SECONDS = 0.05;

static int rank, target;
static MPI_Win win;
static MPI_Aint start;
static double times[TIMES_MAX];
static volatile double sink = 1;

static void operate(enum operation operation)
{
    static char bulk[BULK];
    static int64_t value = 7, compare = -1, result;
    switch (operation) {
    case PUT: MPI_Put(&value, 1, MPI_INT64_T, target, start + CELL, 1, MPI_INT64_T, win); break;
    case GET: MPI_Get(&result, 1, MPI_INT64_T, target, start + CELL, 1, MPI_INT64_T, win); break;
    case FETCH: MPI_Fetch_and_op(&value, &result, MPI_INT64_T, target, start, MPI_SUM, win); break;
    case SWAP:
        MPI_Compare_and_swap(&value, &compare, &result, MPI_INT64_T, target, start, win);
        break;
    default: MPI_Put(bulk, BULK, MPI_CHAR, target, start + BULK_AT, BULK, MPI_CHAR, win); break;
    }
    MPI_Win_flush(target, win);
}

static int in_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(enum operation operation, double seconds, enum phase phase)
{
    int count = 0;
    double began = MPI_Wtime(), now = began;
    while (count < TIMES_MAX && now - began < seconds) {
        double before = now;
        operate(operation);
        now = MPI_Wtime();
        times[count++] = (now - before) * 1e6;
    }
    double first = times[0];
    qsort(times, (size_t)count, sizeof *times, in_order);
    printf("%-9s %-17s %10.1f %10.1f %10.1f %10.1f %8d\n", phase_names[phase],
           operation_names[operation], first, times[count / 10], times[count / 2],
           times[count * 99L / 100], count);
    fflush(stdout);
}

static void compute(double seconds, enum phase phase)
{
    int found;
    double began = MPI_Wtime(), now = began, next = began + PROBE_SECONDS;
    for (; now - began < seconds; now = MPI_Wtime()) {
        for (int i = 0; i < 200; i++)
            sink = sink * 1.0000001 + 1e-9;
        if (phase == PROBES && now > next) {
            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
            next = now + PROBE_SECONDS;
        }
    }
}

static void run(enum operation operation, enum phase phase, double seconds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == target && phase != WAITS) {
        compute(seconds, phase);
    } else if (rank == 0 && phase == WAITS) {
        measure(operation, WAIT_SECONDS, phase);
    } else if (rank == 0) {
        usleep((useconds_t)(START_SECONDS * 1e6));
        measure(operation, seconds * 0.75 - START_SECONDS, phase);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void ping_pong(void)
{
    int word = 0, other = rank == 0 ? target : 0;
    double began = MPI_Wtime();
    for (int i = 0; i < PING_PONGS; i++) {
        if (rank == 0)
            MPI_Send(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != 0)
            MPI_Send(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("a message of 4 bytes, one way: %.1f us\n",
               (MPI_Wtime() - began) / PING_PONGS / 2 * 1e6);
}

static void *window(const char *flavor)
{
    const MPI_Aint bytes = BULK_AT + BULK;
    void *memory = NULL;
    if (strcmp(flavor, "allocate") == 0) {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        return memset(memory, 0, (size_t)bytes);
    }
    memory = calloc(1, (size_t)bytes);
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (strcmp(flavor, "create") == 0) {
        MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    } else {
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_attach(win, memory, bytes);
        MPI_Get_address(memory, &start);
        MPI_Bcast(&start, 1, MPI_AINT, target, MPI_COMM_WORLD);
    }
    return memory;
}

int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    target = size - 1;
    if (target == 0) {
        fprintf(stderr, "rma_across_nodes: needs two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    window(argc > 1 ? argv[1] : "allocate");
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 || rank == target)
        ping_pong();
    if (rank == 0)
        printf("%-9s %-17s %10s %10s %10s %10s %8s\n", "target", "us", "first", "p10", "median",
               "p99", "count");
    for (int phase = WAITS; phase <= PROBES; phase++)
        for (int operation = 0; operation < OPERATIONS; operation++)
            run((enum operation)operation, (enum phase)phase, seconds);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
