// What a sum of 1,024 doubles into another rank costs with lock_all while that rank changes a
// single element of its own memory by fetch-and-op: not at all (unmixed), all the time (mixed), or
// until just before (switched: the calls of rank 0 after it, by number). And the cost of the single
// ones. The element is the one after the doubles (outside), or one of them (inside).
// usage: two ranks

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS = 1024, CALLS = 4000, SWITCHES = 200, FIRST = 8, TARGET = 1 };

static int rank, element;
static MPI_Win win;
static double ones[ELEMENTS];

static void sum(void)
{
    MPI_Accumulate(ones, ELEMENTS, MPI_DOUBLE, TARGET, 0, ELEMENTS, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_flush(TARGET, win);
}

static void single(void)
{
    static int64_t one = 1, before;
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, TARGET, element, MPI_SUM, win);
    MPI_Win_flush(TARGET, win);
}

static double ns_of(void (*call)(void), int times)
{
    double start = MPI_Wtime();
    for (int i = 0; i < times; i++)
        call();
    return (MPI_Wtime() - start) / times * 1e9;
}

// Both ranks at the same time, if they have something to do.
static void together(const char *name, void (*first)(void), void (*second)(void))
{
    void (*mine)(void) = rank == 0 ? first : second;
    double times[2], ns;
    if (mine)
        ns_of(mine, CALLS);
    MPI_Barrier(MPI_COMM_WORLD);
    ns = mine ? ns_of(mine, CALLS) : 0;
    MPI_Gather(&ns, 1, MPI_DOUBLE, times, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%-9s sum of %d doubles %7.0f ns  single %6.0f ns\n", name, ELEMENTS, times[0],
               times[1]);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void switched(void)
{
    static double ns[FIRST][SWITCHES];
    for (int k = 0; k < SWITCHES; k++) {
        if (rank == TARGET)
            ns_of(single, 200);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int call = 0; call < FIRST && rank == 0; call++)
            ns[call][k] = ns_of(sum, 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank != 0)
        return;
    printf("switched  sums by number:");
    for (int call = 0; call < FIRST; call++) {
        qsort(ns[call], SWITCHES, sizeof(double), ascending);
        printf(" %.0f", ns[call][SWITCHES / 2]);
    }
    printf(" ns\n");
}

int main(int argc, char **argv)
{
    char *base;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ELEMENTS; i++)
        ones[i] = 1;
    MPI_Win_allocate((ELEMENTS + 1) * sizeof(double), sizeof(double), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &base, &win);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int inside = 0; inside <= 1; inside++) {
        element = inside ? ELEMENTS / 2 : ELEMENTS;
        if (rank == 0)
            printf("%s\n", inside ? "inside:" : "outside:");
        together("unmixed", sum, NULL);
        together("unmixed", NULL, single);
        together("mixed", sum, single);
        switched();
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
