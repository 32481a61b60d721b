// What a sum of many elements into another rank costs, with lock_all and under an exclusive lock,
// compared with a loop of the compiler over private memory. Ones are added: a sum of zeros changes
// nothing, and libfompi does not store what does not change.
// usage: two ranks; compiled with -O3 -march=native the loop uses the vectors that libfompi uses

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS_MAX = 8192, ADDITIONS = 4000000, ROUNDS = 5 };

#define ADD(type)                                                                                  \
    static __attribute__((noinline)) void add_##type(void *restrict to, const void *restrict from, \
                                                     int count)                                    \
    {                                                                                              \
        for (int i = 0; i < count; i++)                                                            \
            ((type *)to)[i] += ((const type *)from)[i];                                            \
    }                                                                                              \
    static void set_ones_##type(void *elements)                                                    \
    {                                                                                              \
        for (int i = 0; i < ELEMENTS_MAX; i++)                                                     \
            ((type *)elements)[i] = 1;                                                             \
    }

ADD(double)
ADD(float)
ADD(int)

struct kind {
    const char *name;
    MPI_Datatype type;
    void (*add)(void *restrict, const void *restrict, int);
    void (*set_ones)(void *);
};

// The fewest nanoseconds of a call, or of the loop if there is no window.
static double nanoseconds(const struct kind *kind, int count, const void *ones, void *sums,
                          MPI_Win win)
{
    double best = 1e9;
    int calls = ADDITIONS / (count + 500);
    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < calls; i++) {
            if (win == MPI_WIN_NULL) {
                kind->add(sums, ones, count);
                continue;
            }
            MPI_Accumulate(ones, count, kind->type, 1, 0, count, kind->type, MPI_SUM, win);
            MPI_Win_flush(1, win);
        }
        double each = (MPI_Wtime() - start) / calls * 1e9;
        best = each < best ? each : best;
    }
    return best;
}

static void measure(const struct kind *kind, int count, MPI_Win win)
{
    size_t bytes = ELEMENTS_MAX * sizeof(double);
    void *ones = aligned_alloc(64, bytes), *sums = aligned_alloc(64, bytes);
    kind->set_ones(ones);
    kind->set_ones(sums);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Put(ones, count, kind->type, 1, 0, count, kind->type, win);
    MPI_Win_flush(1, win);
    double exclusive = nanoseconds(kind, count, ones, sums, win);
    MPI_Win_unlock(1, win);
    MPI_Win_lock_all(0, win);
    double shared = nanoseconds(kind, count, ones, sums, win);
    MPI_Win_unlock_all(win);
    double loop = nanoseconds(kind, count, ones, sums, MPI_WIN_NULL);
    printf("%-6s %5d  lock_all %8.0f ns  exclusive %8.0f ns  loop %8.0f ns\n", kind->name, count,
           shared, exclusive, loop);
    free(ones);
    free(sums);
}

int main(int argc, char **argv)
{
    const struct kind known[] = {
        {"double", MPI_DOUBLE, add_double, set_ones_double},
        {"float", MPI_FLOAT, add_float, set_ones_float},
        {"int", MPI_INT, add_int, set_ones_int},
    };
    void *base;
    MPI_Win win;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(ELEMENTS_MAX * sizeof(double), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < 3; i++) {
        measure(&known[i], 1024, win);
        measure(&known[i], ELEMENTS_MAX, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
