// Created windows without memory on some ranks or on all of them, with a null pointer or another
// one as the base. MPI-4.1 section 12.2.1.
// ranks: 1 2 3 4

#include "created.h"

enum { LONGS = 50 };

static long *memory;

// Calls that move nothing are right at every target.
static void move_nothing(MPI_Win win)
{
    long value = 1;
    for (int target = 0; target < size; target++) {
        OK(MPI_Put(&value, 0, MPI_LONG, target, 0, 0, MPI_LONG, win));
        OK(MPI_Get(&value, 0, MPI_LONG, target, 0, 0, MPI_LONG, win));
        OK(MPI_Accumulate(&value, 0, MPI_LONG, target, 0, 0, MPI_LONG, MPI_SUM, win));
    }
    OK(MPI_Put(&value, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win));
    CHECK_EQ(value, 1);
}

static void size_is(MPI_Win win, MPI_Aint bytes)
{
    MPI_Aint *found;
    int flag;
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &found, &flag));
    CHECK(flag);
    CHECK_EQ(*found, bytes);
}

// `has_memory` says so for each rank.
static void try(void *base_without, int (*has_memory)(int))
{
    const long one = 1;
    long before;
    const MPI_Aint bytes = has_memory(rank) ? LONGS * sizeof(long) : 0;
    memset(memory, 0, LONGS * sizeof(long));
    MPI_Win win = window_over(bytes > 0 ? memory : base_without, bytes, sizeof(long));
    size_is(win, bytes);
    OK(MPI_Win_fence(0, win));
    move_nothing(win);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_lock_all(0, win));
    move_nothing(win);
    for (int target = 0; target < size; target++)
        if (has_memory(target)) {
            OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, 0, MPI_SUM, win));
            OK(MPI_Put(&one, 1, MPI_LONG, target, 1 + rank, 1, MPI_LONG, win));
        }
    OK(MPI_Win_unlock_all(win));
    lock_own_memory(win);
    CHECK_EQ(memory[0], bytes > 0 ? size : 0);
    for (int i = 0; i < size; i++)
        CHECK_EQ(memory[1 + i], bytes > 0);
    unlock_own_memory(win);
    OK(MPI_Win_free(&win));
}

static int nobody(int target) { return target < 0; }
static int the_first(int target) { return target == 0; }
static int the_last(int target) { return target == size - 1; }
static int every_second(int target) { return target % 2 == 1; }
static int all_but_the_first(int target) { return target != 0; }

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int (*const choices[5])(int) = {nobody, the_first, the_last, every_second, all_but_the_first};
    memory = heap_memory(LONGS * sizeof(long));
    for (int i = 0; i < 5; i++) {
        try(NULL, choices[i]);
        try(memory + 3, choices[i]);
    }
    return check_end();
}
