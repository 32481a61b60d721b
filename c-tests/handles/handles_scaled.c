// FOMPI_Mem_accumulate_scaled adds a factor times the origin to the target, in each type that it knows: by all
// ranks at once into the memory of each, of few and of many elements, with the buffers free when it returns. A
// wrong type, count, pointer or place is an error and changes nothing. docs/guide/memory-handles.md. The plain
// MPI has no such call.
// ranks: 1 2 4

#include <complex.h>

#include "handles.h"

#pragma weak FOMPI_Mem_accumulate_scaled

enum { COUNT = 3000, ROUNDS = 20 };

static MPI_Win win;
static FOMPI_Mem mems[16];
static void *base;

// In each type all numbers are small integers, so that sums are exact.
#define SCALES(name, type, mpi_type, unit) \
    static void name(int count, int attributes) \
    { \
        type *memory = base, *values = malloc(sizeof(type) * COUNT), factor, sum = 0; \
        for (int k = 0; k < COUNT; k++) \
            memory[k] = (type)(k % 7); \
        OK(MPI_Barrier(MPI_COMM_WORLD)); \
        for (int round = 0; round < ROUNDS; round++) \
            for (int to = 0; to < size; to++) { \
                for (int k = 0; k < count; k++) \
                    values[k] = (type)((k % 5 + rank) * unit); \
                factor = (type)((round - 3) * unit + 1); \
                OK(FOMPI_Mem_accumulate_scaled(&factor, values, count, mpi_type, mems[to], sizeof(type), attributes)); \
                memset(values, 0x5a, sizeof(type) * COUNT); \
                memset(&factor, 0x5a, sizeof factor); \
            } \
        OK(FOMPI_Complete(FOMPI_ALL_RANKS, win)); \
        OK(MPI_Barrier(MPI_COMM_WORLD)); \
        for (int k = 0; k < COUNT; k++) { \
            sum = (type)(k % 7); \
            for (int round = 0; k > 0 && k <= count && round < ROUNDS; round++) \
                for (int from = 0; from < size; from++) \
                    sum += (type)((round - 3) * unit + 1) * (type)(((k - 1) % 5 + from) * unit); \
            CHECK(memory[k] == sum); \
        } \
        OK(MPI_Barrier(MPI_COMM_WORLD)); \
        free(values); \
    }

SCALES(ints, int, MPI_INT, 1)
SCALES(longs, long, MPI_LONG, 1)
SCALES(floats, float, MPI_FLOAT, 0.5f)
SCALES(doubles, double, MPI_DOUBLE, 0.5)
SCALES(float_complexes, float complex, MPI_C_FLOAT_COMPLEX, (0.5f + 1.0f * I))
SCALES(double_complexes, double complex, MPI_C_DOUBLE_COMPLEX, (0.5 - 2.0 * I))

static void errors(void)
{
    double *memory = base, values[2] = {1, 2}, factor = 2;
    const FOMPI_Mem mem = mems[next_rank()];
    const MPI_Aint bytes = COUNT * (MPI_Aint)sizeof(double complex);
    memset(base, 0, (size_t)bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    EXPECT(FOMPI_Mem_accumulate_scaled(&factor, values, 2, MPI_DOUBLE, mem, bytes - 8, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_accumulate_scaled(&factor, values, 2, MPI_DOUBLE, mem, -8, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_accumulate_scaled(&factor, values, INT64_MAX, MPI_DOUBLE, mem, 0, 0), MPI_ERR_RMA_RANGE);
    EXPECT(FOMPI_Mem_accumulate_scaled(&factor, values, -1, MPI_DOUBLE, mem, 0, 0), MPI_ERR_COUNT);
    EXPECT(FOMPI_Mem_accumulate_scaled(&factor, values, 1, MPI_BYTE, mem, 0, 0), MPI_ERR_TYPE);
    EXPECT(FOMPI_Mem_accumulate_scaled(&factor, values, 1, MPI_DATATYPE_NULL, mem, 0, 0), MPI_ERR_TYPE);
    EXPECT(FOMPI_Mem_accumulate_scaled(NULL, values, 1, MPI_DOUBLE, mem, 0, 0), MPI_ERR_BUFFER);
    EXPECT(FOMPI_Mem_accumulate_scaled(&factor, NULL, 1, MPI_DOUBLE, mem, 0, 0), MPI_ERR_BUFFER);
    EXPECT(FOMPI_Mem_accumulate_scaled(&factor, values, 1, MPI_DOUBLE, mem, 0, 64), MPI_ERR_ARG);
    EXPECT(FOMPI_Mem_accumulate_scaled(&factor, values, 1, MPI_DOUBLE, mem, 0, FOMPI_ATOMIC),
           MPI_ERR_UNSUPPORTED_OPERATION);
    OK(FOMPI_Mem_accumulate_scaled(&factor, NULL, 0, MPI_DOUBLE, mem, 0, 0));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int k = 0; k < 2 * COUNT; k++)
        CHECK(memory[k] == 0);
}

int main(int argc, char **argv)
{
    double complex *private = calloc(COUNT, sizeof *private);
    check_start(&argc, &argv);
    if (!has_handles())
        return check_end();
    // Memory that the ranks of the node map, and memory of the program.
    for (int kind = 0; kind < 2; kind++) {
        win = dynamic_window();
        base = kind == 0 ? NULL : private;
        share(win, &base, COUNT * sizeof(double complex), mems);
        for (int attributes = 0; attributes <= FOMPI_REMOTE; attributes += FOMPI_REMOTE)
            for (int count = 1; count < COUNT; count += COUNT - 2) {
                ints(count, attributes);
                longs(count, attributes);
                floats(count, attributes);
                doubles(count, attributes);
                float_complexes(count, attributes);
                double_complexes(count, attributes);
            }
        errors();
        unshare(mems);
        if (kind == 0)
            OK(MPI_Free_mem(base));
        OK(MPI_Win_free(&win));
    }
    free(private);
    return check_end();
}
