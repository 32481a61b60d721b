// Puts of eight bytes by the hundred thousand between two flushes, to one target and to all in
// turns: all of them arrive, and what the origin needs for them is bounded. Ten million where
// FOMPI_TEST_LARGE is 1. MPI-4.1 section 12.3.1.
// ranks: 2 4
// plain ranks: 2

#include "check.h"

enum { PLACES = 1 << 18, FEW = 200000, MANY = 10000000, GROWTH_KIB_MAX = 6144 };

static MPI_Win win;
static long *base;
static long values[PLACES];

// The memory of this process alone, in KiB: windows do not count.
static long own_kib(void)
{
    char line[200];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        sscanf(line, "RssAnon: %ld", &kib);
    fclose(status);
    CHECK(kib > 0);
    return kib;
}

// The i-th put goes to the place of its number, in the part of this rank.
static void put_all(long count, int target_count)
{
    for (long i = 0; i < count; i++) {
        int target = (rank + 1 + (int)(i % target_count)) % size;
        OK(MPI_Put(&values[i % PLACES], 1, MPI_LONG, target, rank * PLACES + i % PLACES, 1,
                   MPI_LONG, win));
    }
}

static void bounded(long count, int target_count)
{
    long before = own_kib();
    put_all(count, target_count);
    long grown = own_kib() - before;
    OK(MPI_Win_flush_all(win));
    if (grown > GROWTH_KIB_MAX)
        check_failed(__FILE__, __LINE__, "%ld puts took %ld KiB", count, grown);
}

// What this rank has of `origin`, whose i-th put went here if `target_count` says so.
static void check_from(int origin, long count, int target_count)
{
    for (long i = 0; i < PLACES; i++) {
        int is_here = (origin + 1 + (int)(i % target_count)) % size == rank;
        CHECK_EQ(base[origin * PLACES + i], i < count && is_here ? 1000000 * (origin + 1) + i : 0);
    }
}

static void settle(void)
{
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
}

int main(int argc, char **argv)
{
    check_start_within(100, &argc, &argv);
    const char *wanted = getenv("FOMPI_TEST_LARGE");
    const long count = wanted != NULL && strcmp(wanted, "1") == 0 ? MANY : FEW;
    base = window_of((MPI_Aint)size * PLACES * (MPI_Aint)sizeof(long), sizeof(long), &win);
    for (long i = 0; i < PLACES; i++)
        values[i] = 1000000 * (rank + 1) + i;
    OK(MPI_Win_lock_all(0, win));
    // The first ones make what is made once.
    put_all(1000, size);
    OK(MPI_Win_flush_all(win));
    settle();
    memset(base, 0, (size_t)size * PLACES * sizeof(long));
    settle();
    bounded(count, 1);
    settle();
    check_from(previous_rank(), count, 1);
    settle();
    memset(base, 0, (size_t)size * PLACES * sizeof(long));
    settle();
    bounded(count, size);
    settle();
    // With more puts than places, those of one place go to several targets.
    for (int origin = 0; count <= PLACES && origin < size; origin++)
        check_from(origin, count, size);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
