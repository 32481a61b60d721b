// Post, start, complete and wait over random graphs whose groups reach over all nodes: small ones
// and the whole world (20 do not fit in the control words of a rank), with the own rank and without,
// hundreds of times with nothing else to hold the ranks together. MPI-4.1 section 12.5.2.
// ranks: 1 2 4 8 20
// plain ranks: 1 2

#include "check.h"

enum { ROUNDS = 200, RANKS_MAX = 32, RUN = 40 };

static MPI_Win win;
static MPI_Group world;
static long *base;

// The same on all ranks: whether `origin` accesses `target` in this round. Sparse and dense rounds
// take turns; in one of eight everybody accesses everybody, the own rank too.
static int accesses(int round, int origin, int target)
{
    unsigned hash = (unsigned)(round * 64 + origin) * 64u + (unsigned)target;
    hash = (hash ^ 0x9e3779b9u) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    hash ^= hash >> 16;
    return round % 8 == 0 || hash % 8 < (unsigned)(round % 8);
}

static long value_of(int round, int origin, int k) { return round * 100000 + origin * 1000 + k; }

// The ranks that this one accesses, or that access it; in falling order now and then.
static int neighbours(int round, int as_origin, int *ranks, MPI_Group *group)
{
    int count = 0;
    for (int i = 0; i < size; i++) {
        int other = round % 3 == 0 ? size - 1 - i : i;
        if (as_origin ? accesses(round, rank, other) : accesses(round, other, rank))
            ranks[count++] = other;
    }
    OK(MPI_Group_incl(world, count, ranks, group));
    return count;
}

static void wait_for_origins(int round)
{
    int done = 0;
    if (round % 2 == 0) {
        OK(MPI_Win_wait(win));
        return;
    }
    while (!done)
        OK(MPI_Win_test(win, &done));
}

static void exchange(int round)
{
    int targets[RANKS_MAX], origins[RANKS_MAX];
    static long values[RANKS_MAX][RUN];
    MPI_Group to, from;
    int target_count = neighbours(round, 1, targets, &to);
    int origin_count = neighbours(round, 0, origins, &from);
    OK(MPI_Win_post(from, 0, win));
    OK(MPI_Win_start(to, 0, win));
    for (int i = 0; i < target_count; i++) {
        int run = 1 + round % RUN;
        for (int k = 0; k < run; k++)
            values[i][k] = value_of(round, rank, k);
        OK(MPI_Put(values[i], run, MPI_LONG, targets[i], rank * RUN, run, MPI_LONG, win));
    }
    OK(MPI_Win_complete(win));
    wait_for_origins(round);
    for (int i = 0; i < origin_count; i++)
        for (int k = 0; k < 1 + round % RUN; k++)
            CHECK_EQ(base[origins[i] * RUN + k], value_of(round, origins[i], k));
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
}

// One origin and many targets, then the other way about, the same groups again and again.
static void star(void)
{
    MPI_Group all, middle;
    int first = 0;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(world, 1, &first, &middle));
    for (long i = 1; i <= 50; i++) {
        long value = i * 1000 + rank;
        OK(MPI_Win_post(middle, 0, win));
        if (rank == 0) {
            OK(MPI_Win_start(all, 0, win));
            for (int target = 0; target < size; target++)
                OK(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
            OK(MPI_Win_complete(win));
        }
        OK(MPI_Win_wait(win));
        CHECK_EQ(base[0], i * 1000);
        if (rank == 0)
            OK(MPI_Win_post(all, 0, win));
        OK(MPI_Win_start(middle, 0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, 0, 1 + rank, 1, MPI_LONG, win));
        OK(MPI_Win_complete(win));
        if (rank == 0) {
            OK(MPI_Win_wait(win));
            for (int origin = 0; origin < size; origin++)
                CHECK_EQ(base[1 + origin], i * 1000 + origin);
        }
    }
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&middle));
}

// What rank 0 gets in an epoch is what was there before each target went on after its MPI_Win_wait.
static void gets_come_first(void)
{
    static long got[RANKS_MAX][RANKS_MAX * RUN];
    MPI_Group all, middle;
    int first = 0, count = size * RUN;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(world, 1, &first, &middle));
    for (int round = 0; round < 50; round++) {
        for (int k = 0; k < count; k++)
            base[k] = value_of(round, rank, 0);
        OK(MPI_Win_post(middle, 0, win));
        if (rank == 0) {
            OK(MPI_Win_start(all, 0, win));
            for (int target = 0; target < size; target++)
                OK(MPI_Get(got[target], count, MPI_LONG, target, 0, count, MPI_LONG, win));
            OK(MPI_Win_complete(win));
            for (int target = 0; target < size; target++)
                for (int k = 0; k < count; k++)
                    CHECK_EQ(got[target][k], value_of(round, target, 0));
        }
        OK(MPI_Win_wait(win));
        for (int k = 0; k < count; k++)
            base[k] = -1;
    }
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&middle));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK(size <= RANKS_MAX);
    base = window_of(RANKS_MAX * RUN * (MPI_Aint)sizeof(long), sizeof(long), &win);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int round = 0; round < ROUNDS; round++)
        exchange(round);
    star();
    gets_come_first();
    OK(MPI_Group_free(&world));
    OK(MPI_Win_free(&win));
    return check_end();
}
