/* What a put, or a get, with a flush costs for shapes of derived datatypes: between two ranks, the
 * least of some calls in ns.
 *
 *     mpicc -O2 benches/shapes.c -o shapes && mpirun -n 2 ./shapes [created]
 *     mpirun -n 2 ./shapes grid [SECONDS [PART]...]   SECONDS for each line, by default 0.02
 *
 * The first has puts of a few shapes to an allocated window, or to a created one. The second has
 * blocks of many sizes with holes at the origin, at the target or at both, and shapes of programs;
 * after the time stand the requests of a call to the device, where there is one. PARTs select some
 * of its lines, which are
 *
 *     put|get:holes:bytes*blocks[+gap]     holes: origin, target or both; a gap is as long as a
 *                                          block if nothing is said
 *     put|get:what                         a shape by its name */
#include "../include/fompi.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4 << 20, BATCHES = 12, CALLS = 300, BLOCKS = 512, RUNS_MAX = 2048, CALLS_MIN = 4 };
enum holes { ORIGIN = 1, TARGET = 2, BOTH = 3 };

static MPI_Win win;
static char data[BYTES];
static double seconds_per_line = 0.02;
static char **parts;
static int (*get_counts)(fompi_verbs_counts *);

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

static MPI_Datatype structures(int count) {
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, one, type;
    MPI_Type_create_struct(2, lengths, places, types, &one);
    MPI_Type_contiguous(count, one, &type);
    MPI_Type_free(&one);
    return type;
}

static MPI_Datatype box(int edge, const int parts[3]) {
    const int sizes[3] = {edge, edge, edge}, starts[3] = {1, 2, 3};
    MPI_Datatype type;
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    return type;
}

/* Blocks of `length` doubles, with gaps of 1 to 4 blocks. */
static MPI_Datatype random_places(int count, int length) {
    static int places[RUNS_MAX];
    int place = 0;
    MPI_Datatype type;
    for (int i = 0; i < count; i++, place += (2 + rand() % 4) * length) places[i] = place;
    MPI_Type_create_indexed_block(count, length, places, MPI_DOUBLE, &type);
    return type;
}

static void few_shapes(void) {
    vectors();
    measure("256 structures {int, double}", structures(256));
    measure("subarray 8^3 of 32^3 doubles", box(32, (const int[3]){8, 8, 8}));
    measure("512 doubles at random places", random_places(BLOCKS, 1));
}

static unsigned long requests(void) {
    fompi_verbs_counts counts;
    return get_counts && get_counts(&counts) ? counts.puts + counts.gets : 0;
}

static int is_wanted(const char *name) {
    int i = 0;
    while (parts && parts[i] && strstr(name, parts[i]) == NULL) i++;
    return parts == NULL || parts[0] == NULL || parts[i] != NULL;
}

/* One line: the least of the calls that `seconds_per_line` have room for. */
static void line(const char *shape, int is_get, MPI_Datatype type, enum holes holes) {
    char name[80];
    int size;
    snprintf(name, sizeof name, "%s:%s", is_get ? "get" : "put", shape);
    if (!is_wanted(name)) return;
    MPI_Type_size(type, &size);
    MPI_Datatype origin = holes & ORIGIN ? type : MPI_BYTE;
    MPI_Datatype target = holes & TARGET ? type : MPI_BYTE;
    int origin_count = holes & ORIGIN ? 1 : size, target_count = holes & TARGET ? 1 : size;
    double least = 1e18, began = MPI_Wtime();
    unsigned long asked = 0;
    for (int i = 0; i < CALLS_MIN || MPI_Wtime() - began < seconds_per_line; i++) {
        unsigned long before = requests();
        double start = MPI_Wtime();
        if (is_get) MPI_Get(data, origin_count, origin, 1, 0, target_count, target, win);
        else MPI_Put(data, origin_count, origin, 1, 0, target_count, target, win);
        MPI_Win_flush(1, win);
        double ns = (MPI_Wtime() - start) * 1e9;
        least = ns < least ? ns : least;
        asked = requests() - before;
    }
    printf("%s %.0f %lu\n", name, least, asked);
    fflush(stdout);
}

/* Both ways; frees the type. */
static void both_ways(const char *name, MPI_Datatype type, enum holes holes) {
    MPI_Type_commit(&type);
    line(name, 0, type, holes);
    line(name, 1, type, holes);
    MPI_Type_free(&type);
}

static void blocks(enum holes holes, int bytes, int count, int gap) {
    static const char *const where[] = {"", "origin", "target", "both"};
    char name[64];
    MPI_Datatype type;
    int length = snprintf(name, sizeof name, "%s:%d*%d", where[holes], bytes, count);
    if (gap) snprintf(name + length, sizeof name - (size_t)length, "+%d", gap);
    MPI_Type_create_hvector(count, bytes, bytes + (gap ? gap : bytes), MPI_BYTE, &type);
    both_ways(name, type, holes);
}

static void grid(void) {
    static const int sizes[] = {8, 64, 256, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10};
    static const int totals[] = {1 << 10, 16 << 10, 128 << 10, 1 << 20};
    static const int gaps[] = {64, 256, 512, 1 << 10, 4 << 10};
    for (int t = 0; t < 4; t++)
        for (int s = 0; s < 9; s++) {
            int count = totals[t] / sizes[s];
            if (count >= 2 && count <= RUNS_MAX) blocks(ORIGIN, sizes[s], count, 0);
        }
    for (int s = 0; s < 4; s++)
        for (int g = 0; g < 5; g++) blocks(TARGET, sizes[s], 64, gaps[g]);
    blocks(BOTH, 8, 64, 0);
    blocks(BOTH, 1 << 10, 64, 0);
    blocks(BOTH, 16 << 10, 64, 0);
    /* The faces of 64^3 doubles: rows that follow each other, rows, single elements. */
    both_ways("face-xy", box(68, (const int[3]){1, 64, 64}), ORIGIN);
    both_ways("face-xy-both", box(68, (const int[3]){1, 64, 64}), BOTH);
    both_ways("face-xz", box(68, (const int[3]){64, 1, 64}), ORIGIN);
    both_ways("face-xz-both", box(68, (const int[3]){64, 1, 64}), BOTH);
    both_ways("face-yz", box(68, (const int[3]){32, 64, 1}), ORIGIN);
    both_ways("face-yz-target", box(68, (const int[3]){32, 64, 1}), TARGET);
    both_ways("random-1", random_places(BLOCKS, 1), ORIGIN);
    both_ways("random-1-target", random_places(BLOCKS, 1), TARGET);
    both_ways("random-32", random_places(BLOCKS, 32), ORIGIN);
    both_ways("random-32-target", random_places(BLOCKS, 32), TARGET);
    both_ways("structures", structures(BLOCKS), ORIGIN);
    both_ways("structures-both", structures(BLOCKS), BOTH);
}

int main(int argc, char **argv) {
    int rank, is_grid = argc > 1 && strcmp(argv[1], "grid") == 0;
    int created = argc > 1 && !is_grid;
    char *base = created ? malloc(BYTES) : NULL;
    if (is_grid && argc > 2) seconds_per_line = atof(argv[2]), parts = argv + 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *(void **)&get_counts = dlsym(RTLD_DEFAULT, "fompi_get_verbs_counts");
    if (created) MPI_Win_create(base, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    else MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (rank == 0) {
        memset(data, 1, sizeof data);
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        if (is_grid) grid();
        else few_shapes();
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
    if (created) free(base);
    MPI_Finalize();
    return 0;
}
