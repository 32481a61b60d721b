/* A distributed hash table after section 4.1 of "Enabling Highly-Scalable Remote Memory Access
 * Programming with MPI-3 One Sided" (SC'13). Each process manages a local volume: a table of cells,
 * an overflow heap for elements that collide, and the number of heap cells taken. Elements are
 * 8-byte integers with random keys, so each goes to a random process. Only MPI, nothing else.
 *
 * usage: hashtable [-n inserts per rank] [-t seconds] [-b]
 *   -t  stop inserting after so many seconds, even if fewer elements are in
 *   -b  every second rank computes outside MPI for these seconds while the others insert
 *
 * Then every element is looked for from another rank than the one that inserted it, and the
 * elements in all local volumes are counted. Exit status 1 if one is missing or too much.
 * Prints one line: name=value pairs. */
#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EMPTY = 0 };                 /* value of a free cell, and the end of a chain */
typedef struct { uint64_t value, next; } Cell; /* next: index in the heap plus 1 */

/* One local volume: a taken-counter (in a cell of its own), the table, the heap. */
typedef struct {
    MPI_Win win;
    Cell *mine;
    uint64_t table_cells, heap_cells;
    int rank, size;
} Table;

static MPI_Aint value_at(uint64_t cell) { return (MPI_Aint)(cell * sizeof(Cell)); }
static MPI_Aint next_at(uint64_t cell) { return value_at(cell) + 8; }

/* A bijection of 64-bit integers (splitmix64's finaliser): keys are random and never repeat. */
static uint64_t scramble(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The i-th element that a rank inserts; never EMPTY, because scramble(0) is the only 0. */
static uint64_t element(int rank, uint64_t i) {
    return scramble(((uint64_t)rank << 40) + i + 1);
}

static int owner_of(const Table *t, uint64_t value) { return (int)(value % (uint64_t)t->size); }

/* The table's cells are 1 .. table_cells of the window, the heap's come behind them. */
static uint64_t table_cell(const Table *t, uint64_t value) {
    return 1 + value / (uint64_t)t->size % t->table_cells;
}
static uint64_t heap_cell(const Table *t, uint64_t next) { return t->table_cells + next; }

static void table_create(Table *t, uint64_t inserts) {
    MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t->size);
    t->table_cells = inserts;
    t->heap_cells = 2 * inserts + 64;
    MPI_Aint bytes = value_at(1 + t->table_cells + t->heap_cells);
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &t->mine, &t->win);
    MPI_Win_lock_all(0, t->win);
    memset(t->mine, 0, (size_t)bytes);
    MPI_Win_sync(t->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Puts an element into its owner's local volume. Returns 1 if it collided. */
static int insert(Table *t, uint64_t value) {
    int owner = owner_of(t, value);
    uint64_t cell = table_cell(t, value), empty = EMPTY, found, one = 1, taken;
    MPI_Compare_and_swap(&value, &empty, &found, MPI_UINT64_T, owner, value_at(cell), t->win);
    MPI_Win_flush(owner, t->win);
    if (found == EMPTY) return 0;
    MPI_Fetch_and_op(&one, &taken, MPI_UINT64_T, owner, 0, MPI_SUM, t->win);
    MPI_Win_flush(owner, t->win);
    if (taken >= t->heap_cells) {
        fprintf(stderr, "hashtable: rank %d has no heap cell left\n", owner);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    Cell overflow = {value, EMPTY};
    uint64_t next = taken + 1;
    MPI_Fetch_and_op(&next, &overflow.next, MPI_UINT64_T, owner, next_at(cell), MPI_REPLACE,
                     t->win);
    MPI_Win_flush(owner, t->win);
    MPI_Put(&overflow, 2, MPI_UINT64_T, owner, value_at(heap_cell(t, next)), 2, MPI_UINT64_T,
            t->win);
    MPI_Win_flush(owner, t->win);
    return 1;
}

/* Follows the chain of the element's table cell. */
static int find(Table *t, uint64_t value) {
    int owner = owner_of(t, value);
    Cell cell;
    for (uint64_t at = table_cell(t, value);; at = heap_cell(t, cell.next)) {
        MPI_Get(&cell, 2, MPI_UINT64_T, owner, value_at(at), 2, MPI_UINT64_T, t->win);
        MPI_Win_flush(owner, t->win);
        if (cell.value == value) return 1;
        if (cell.next == EMPTY) return 0;
    }
}

/* Elements in this rank's own local volume, and how many of them are in the heap. */
static uint64_t count_mine(Table *t, uint64_t *heap) {
    uint64_t n = 0;
    MPI_Win_sync(t->win);
    *heap = t->mine[0].value;
    for (uint64_t cell = 1; cell <= heap_cell(t, *heap); cell++) n += t->mine[cell].value != EMPTY;
    return n;
}

static void compute(double seconds) {
    volatile double x = 1;
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        for (int i = 0; i < 100000; i++) x = x * 1.0000001 + 1e-9;
}

/* Every element that the next rank inserted. */
static uint64_t verify(Table *t, uint64_t inserted) {
    int from = (t->rank + 1) % t->size;
    uint64_t *all = malloc((size_t)t->size * sizeof *all), found = 0;
    MPI_Allgather(&inserted, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (uint64_t i = 0; i < all[from]; i++) found += (uint64_t)find(t, element(from, i));
    free(all);
    return found;
}

static int report(Table *t, uint64_t inserted, uint64_t collided, double seconds) {
    uint64_t heap, mine[5] = {inserted, collided, verify(t, inserted), 0, 0}, sum[5];
    MPI_Barrier(MPI_COMM_WORLD);
    mine[3] = count_mine(t, &heap);
    mine[4] = heap;
    double longest;
    MPI_Allreduce(mine, sum, 5, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    int good = sum[2] == sum[0] && sum[3] == sum[0] && sum[4] == sum[1];
    if (t->rank == 0) {
        printf("ranks=%d inserts=%" PRIu64 " seconds=%.6f rate=%.0f collisions=%" PRIu64
               " verified=%" PRIu64 " stored=%" PRIu64 " good=%d\n", t->size, sum[0], longest,
               (double)sum[0] / longest, sum[1], sum[2], sum[3], good);
        fflush(stdout);
    }
    return good;
}

int main(int argc, char **argv) {
    uint64_t inserts = 16384, i = 0, collided = 0;
    double seconds_max = 10, seconds = 0;
    int busy = 0, option;
    MPI_Init(&argc, &argv);
    while ((option = getopt(argc, argv, "n:t:b")) != -1) {
        if (option == 'n') inserts = strtoull(optarg, NULL, 10);
        else if (option == 't') seconds_max = atof(optarg);
        else if (option == 'b') busy = 1;
        else MPI_Abort(MPI_COMM_WORLD, 2);
    }
    Table table;
    table_create(&table, inserts);
    double start = MPI_Wtime();
    if (busy && table.rank % 2 == 1) {
        compute(seconds_max);
    } else {
        for (; i < inserts && (i % 16 || MPI_Wtime() - start < seconds_max); i++)
            collided += (uint64_t)insert(&table, element(table.rank, i));
        seconds = MPI_Wtime() - start;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int good = report(&table, i, collided, seconds);
    MPI_Win_unlock_all(table.win);
    MPI_Win_free(&table.win);
    MPI_Finalize();
    return !good;
}
