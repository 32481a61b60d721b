// One window in which the ranks expose memory of different kinds and sizes: from MPI_Alloc_mem,
// from the heap, static data, none at all. Every rank works on every other. MPI-4.1 section 12.2.1.
// ranks: 2 3 4 8
// settings: FOMPI_ADOPT=never
// plain ranks: 2 3 4

#include "created.h"

// Every window that has memory: a counter, a maximum, and a row of longs for each origin.
enum { COUNTER, LARGEST, ROWS, ROW = 300, RANKS_MAX = 8, LONGS = ROWS + RANKS_MAX * ROW };

static int has_memory(int target) { return target % 4 != 3; }

static long *memory_of_this_rank(int turn)
{
    static long fixed[LONGS];
    switch ((rank + turn) % 4) {
    case 0: return mpi_memory(LONGS * sizeof(long));
    case 1: return heap_memory(LONGS * sizeof(long));
    case 2: return memset(fixed, 0, sizeof fixed);
    }
    return NULL;
}

static void give_back(int turn, long *memory)
{
    if ((rank + turn) % 4 == 0)
        OK(MPI_Free_mem(memory));
}

static void work_on(MPI_Win win, int target)
{
    long values[ROW], got[ROW];
    const long one = 1, mine = 100 + rank;
    long before;
    for (int i = 0; i < ROW; i++)
        values[i] = 1000 * rank + i;
    const int row = ROWS + rank * ROW;
    OK(MPI_Put(values, ROW, MPI_LONG, target, row, ROW, MPI_LONG, win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, COUNTER, MPI_SUM, win));
    OK(MPI_Accumulate(&mine, 1, MPI_LONG, target, LARGEST, 1, MPI_LONG, MPI_MAX, win));
    OK(MPI_Win_flush(target, win));
    CHECK(before >= 0 && before < size);
    OK(MPI_Get_accumulate(values, ROW, MPI_LONG, got, ROW, MPI_LONG, target, row, ROW, MPI_LONG,
                          MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    CHECK(memcmp(got, values, sizeof got) == 0);
    OK(MPI_Get(got, ROW, MPI_LONG, target, row, ROW, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < ROW; i++)
        CHECK_EQ(got[i], 2 * values[i]);
}

static void check_memory(const long *memory)
{
    CHECK_EQ(memory[COUNTER], size);
    CHECK_EQ(memory[LARGEST], 100 + size - 1);
    for (int origin = 0; origin < size; origin++)
        for (int i = 0; i < ROW; i++)
            CHECK_EQ(memory[ROWS + origin * ROW + i], 2 * (1000 * origin + i));
}

// `turn` moves the kinds of memory on by one rank.
static void try(int turn)
{
    long *memory = memory_of_this_rank(turn);
    MPI_Win win = window_over(memory, memory != NULL ? LONGS * sizeof(long) : 0, sizeof(long));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < size; i++)
        if (has_memory((rank + i) % size + turn))
            work_on(win, (rank + i) % size);
    OK(MPI_Win_unlock_all(win));
    lock_own_memory(win);
    if (memory != NULL)
        check_memory(memory);
    unlock_own_memory(win);
    OK(MPI_Win_free(&win));
    give_back(turn, memory);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int turn = 0; turn < 4; turn++)
        try(turn);
    return check_end();
}
