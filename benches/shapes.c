/* What a put with a flush costs for some shapes of derived datatypes, in ns: the least of some
 * batches, between two ranks, to an allocated window, or to a created one with an argument.
 *
 *     mpicc -O2 benches/shapes.c -o shapes && mpirun -n 2 ./shapes [created] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1 << 20, BATCHES = 12, CALLS = 300, BLOCKS = 512 };

static MPI_Win win;
static char data[BYTES];

/* Frees the type. */
static void measure(const char *name, MPI_Datatype type) {
    double least = 1e18;
    int size;
    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = MPI_Wtime();
        for (int i = 0; i < CALLS; i++) {
            MPI_Put(data, size, MPI_BYTE, 1, 0, 1, type, win);
            MPI_Win_flush(1, win);
        }
        double ns = (MPI_Wtime() - start) / CALLS * 1e9;
        least = ns < least ? ns : least;
    }
    printf("%-32s %10.1f\n", name, least);
    MPI_Type_free(&type);
}

static void vectors(void) {
    char name[64];
    MPI_Datatype type;
    for (int length = 1; length <= 3; length++) {
        MPI_Type_vector(BLOCKS, length, 2 * length, MPI_DOUBLE, &type);
        snprintf(name, sizeof name, "vector of 512 x %d doubles", length);
        measure(name, type);
    }
}

static void structures(void) {
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, one, type;
    MPI_Type_create_struct(2, lengths, places, types, &one);
    MPI_Type_contiguous(256, one, &type);
    MPI_Type_free(&one);
    measure("256 structures {int, double}", type);
}

static void subarray(void) {
    const int sizes[3] = {32, 32, 32}, parts[3] = {8, 8, 8}, starts[3] = {1, 2, 3};
    MPI_Datatype type;
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    measure("subarray 8^3 of 32^3 doubles", type);
}

static void random_places(void) {
    int places[BLOCKS], place = 0;
    MPI_Datatype type;
    for (int i = 0; i < BLOCKS; i++, place += 2 + rand() % 4) places[i] = place;
    MPI_Type_create_indexed_block(BLOCKS, 1, places, MPI_DOUBLE, &type);
    measure("512 doubles at random places", type);
}

int main(int argc, char **argv) {
    int rank, created = argc > 1;
    char *base = created ? malloc(BYTES) : NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (created) MPI_Win_create(base, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    else MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        vectors();
        structures();
        subarray();
        random_places();
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
    if (created) free(base);
    MPI_Finalize();
    return 0;
}
