/* A distributed hash table after section 4.1 of "Enabling Highly-Scalable Remote Memory Access
 * Programming with MPI-3 One Sided" (SC'13). Each process manages a local volume: a table of cells,
 * an overflow heap for elements that collide, and the number of heap cells taken. Elements are
 * 8-byte integers with random keys, so each goes to a random process. Only MPI, nothing else.
 *
 * usage: hashtable [-n inserts per rank] [-t seconds] [-c] [-b] [-p microseconds] [-e]
 *   -t  stop inserting after so many seconds, even if fewer elements are in
 *   -c  the window is created over memory of malloc, where it is allocated otherwise
 *   -b  every second rank computes outside MPI for these seconds while the others insert
 *   -p  insert one element in so many microseconds, and measure each
 *   -e  with -p: print a line `event RANK BEGIN END` for each insert and each computing, in seconds
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
    int rank, size, is_created;
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
    if (t->is_created) {
        t->mine = malloc((size_t)bytes);
        if (t->mine == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
        MPI_Win_create(t->mine, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &t->win);
    } else {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &t->mine, &t->win);
    }
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

/* Times of what this rank did, in seconds since the start. */
typedef struct { double begin, end; } Event;
enum { EVENTS_MAX = 100000 };
static Event events[EVENTS_MAX];
static int event_count;

static void note(double start, double begin) {
    if (event_count < EVENTS_MAX)
        events[event_count++] = (Event){begin - start, MPI_Wtime() - start};
}

/* One element after the other, as fast as it goes. Returns how many, and adds the collisions. */
static uint64_t insert_all(Table *t, uint64_t inserts, double end, uint64_t *collided) {
    uint64_t i = 0;
    for (; i < inserts && (i % 16 || MPI_Wtime() < end); i++)
        *collided += (uint64_t)insert(t, element(t->rank, i));
    return i;
}

/* One element in every `pause` seconds, as a program that computes in between. */
static uint64_t insert_paced(Table *t, uint64_t inserts, double start, double end, double pause,
                             uint64_t *collided) {
    uint64_t i = 0;
    for (double next = start; i < inserts && MPI_Wtime() < end; next += pause) {
        while (MPI_Wtime() < next) continue;
        double begin = MPI_Wtime();
        *collided += (uint64_t)insert(t, element(t->rank, i++));
        note(start, begin);
    }
    return i;
}

static void print_events(const Table *t) {
    for (int rank = 0; rank < t->size; rank++) {
        if (rank == t->rank)
            for (int i = 0; i < event_count; i++)
                printf("event %d %.6f %.6f\n", rank, events[i].begin, events[i].end);
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
    }
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

/* The longest insert of this rank, in seconds; 0 where inserts are not measured. */
static double longest_wait(int computes) {
    double longest = 0;
    for (int i = 0; i < event_count && !computes; i++)
        if (events[i].end - events[i].begin > longest) longest = events[i].end - events[i].begin;
    return longest;
}

static int report(Table *t, uint64_t inserted, uint64_t collided, double seconds, double wait) {
    uint64_t heap, mine[5] = {inserted, collided, verify(t, inserted), 0, 0}, sum[5];
    MPI_Barrier(MPI_COMM_WORLD);
    mine[3] = count_mine(t, &heap);
    mine[4] = heap;
    double longest, longest_wait;
    MPI_Allreduce(&wait, &longest_wait, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(mine, sum, 5, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    int good = sum[2] == sum[0] && sum[3] == sum[0] && sum[4] == sum[1];
    if (t->rank == 0) {
        printf("ranks=%d inserts=%" PRIu64 " seconds=%.6f rate=%.0f collisions=%" PRIu64
               " verified=%" PRIu64 " stored=%" PRIu64 " wait=%.9f good=%d\n", t->size, sum[0],
               longest, (double)sum[0] / longest, sum[1], sum[2], sum[3], longest_wait, good);
        fflush(stdout);
    }
    return good;
}

int main(int argc, char **argv) {
    uint64_t inserts = 16384, i = 0, collided = 0;
    double seconds_max = 10, seconds = 0, pause = 0;
    int busy = 0, prints = 0, option;
    Table table = {0};
    MPI_Init(&argc, &argv);
    while ((option = getopt(argc, argv, "n:t:cbp:e")) != -1) {
        if (option == 'n') inserts = strtoull(optarg, NULL, 10);
        else if (option == 't') seconds_max = atof(optarg);
        else if (option == 'c') table.is_created = 1;
        else if (option == 'b') busy = 1;
        else if (option == 'p') pause = atof(optarg) / 1e6;
        else if (option == 'e') prints = 1;
        else MPI_Abort(MPI_COMM_WORLD, 2);
    }
    table_create(&table, inserts);
    double start = MPI_Wtime(), end = start + seconds_max;
    int computes = busy && table.rank % 2 == 1;
    if (computes) {
        compute(seconds_max);
        note(start, start);
    } else {
        i = pause > 0 ? insert_paced(&table, inserts, start, end, pause, &collided)
                      : insert_all(&table, inserts, end, &collided);
        seconds = MPI_Wtime() - start;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int good = report(&table, i, collided, seconds, longest_wait(computes));
    if (prints) print_events(&table);
    MPI_Win_unlock_all(table.win);
    MPI_Win_free(&table.win);
    if (table.is_created) free(table.mine);
    MPI_Finalize();
    return !good;
}
