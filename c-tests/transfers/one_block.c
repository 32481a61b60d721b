// Types whose data are one block, made in any way, move as the elements of their block; so does the
// next type that has the handle of a freed one. Each call is made twice: the first one finds out
// what the type is, the second one knows.
// MPI-4.1 sections 12.3.1, 12.3.2 and 5.1.9.
// ranks: 1 2 4

#include "check.h"

enum { LONGS = 64, BLOCK = 8 };

static long *base, there[LONGS], sent[LONGS], got[LONGS];
static MPI_Win win;

// Between stores of one rank and calls of others.
static void step(void)
{
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
}

// Moves `count` items of a type that are `longs` longs after `first` at the origin, and at the
// target, where the items begin at `disp`. Frees the type.
static void moves(MPI_Datatype type, int count, int first, int longs, int disp)
{
    OK(MPI_Type_commit(&type));
    for (int time = 0; time < 2; time++) {
        for (int i = 0; i < LONGS; i++)
            sent[i] = 100 * rank + i + 1000 * time, got[i] = -1, base[i] = -2;
        step();
        // One block of one type to that of the other, both ways, and of the same.
        OK(MPI_Put(sent + BLOCK, count, type, next_rank(), disp + first, longs, MPI_LONG, win));
        step();
        for (int i = 0; i < LONGS; i++) {
            int at = i - disp - first, is_there = at >= 0 && at < longs;
            int from = 100 * previous_rank() + BLOCK + i - disp + 1000 * time;
            CHECK_EQ(base[i], is_there ? from : -2);
        }
        step();
        OK(MPI_Put(sent, longs, MPI_LONG, next_rank(), disp, count, type, win));
        step();
        for (int i = 0; i < LONGS; i++) {
            int at = i - disp - first, is_there = at >= 0 && at < longs;
            CHECK_EQ(base[i], is_there ? 100 * previous_rank() + at + 1000 * time : -2);
            there[i] = is_there ? 100 * rank + at + 1000 * time : -2;
        }
        OK(MPI_Get(got + BLOCK, count, type, next_rank(), disp, count, type, win));
        step();
        for (int i = 0; i < LONGS; i++) {
            int at = i - BLOCK - first, is_there = at >= 0 && at < longs;
            CHECK_EQ(got[i], is_there ? there[disp + first + at] : -1);
        }
    }
    OK(MPI_Type_free(&type));
}

static MPI_Datatype indexed(int first, int longs)
{
    MPI_Datatype type;
    OK(MPI_Type_indexed(1, &longs, &first, MPI_LONG, &type));
    return type;
}

static MPI_Datatype resized(int longs, int extent)
{
    MPI_Datatype inner, type;
    OK(MPI_Type_contiguous(longs, MPI_LONG, &inner));
    OK(MPI_Type_create_resized(inner, 0, extent * (MPI_Aint)sizeof(long), &type));
    OK(MPI_Type_free(&inner));
    return type;
}

// Ways to make a block.
static void constructors(void)
{
    const int lengths[2] = {3, 5}, sizes[2] = {4, 6}, parts[2] = {2, 6}, starts[2] = {1, 0};
    const MPI_Aint places[2] = {0, 3 * sizeof(long)};
    const MPI_Datatype types[2] = {MPI_LONG, MPI_LONG};
    MPI_Datatype type;
    OK(MPI_Type_contiguous(BLOCK, MPI_LONG, &type));
    moves(type, 1, 0, BLOCK, 5);
    OK(MPI_Type_contiguous(3, MPI_LONG, &type));
    moves(type, 4, 0, 12, 3);
    OK(MPI_Type_vector(4, 2, 2, MPI_LONG, &type));
    moves(type, 2, 0, 16, 1);
    OK(MPI_Type_create_struct(2, lengths, places, types, &type));
    moves(type, 1, 0, 8, 2);
    OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_LONG, &type));
    moves(type, 1, 6, 12, 7);
    moves(resized(4, 4), 3, 0, 12, 0);
    moves(resized(4, 9), 1, 0, 4, 0);
    moves(indexed(-4, 3), 1, -4, 3, 6);
    OK(MPI_Type_dup(MPI_LONG, &type));
    moves(type, 7, 0, 7, 1);
}

// Two items of four longs, with a hole between them.
static void hole(void)
{
    MPI_Datatype type = resized(4, 6);
    OK(MPI_Type_commit(&type));
    for (int time = 0; time < 2; time++) {
        for (int i = 0; i < LONGS; i++)
            sent[i] = i + time, base[i] = -2;
        step();
        OK(MPI_Put(sent, 2, type, next_rank(), 0, 8, MPI_LONG, win));
        OK(MPI_Put(sent, 0, type, next_rank(), 20, 0, type, win));
        step();
        for (int i = 0; i < LONGS; i++)
            CHECK_EQ(base[i], i < 4 ? i + time : i < 8 ? i + 2 + time : -2);
        step();
    }
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(sizeof(long) * LONGS, sizeof(long), &win);
    OK(MPI_Win_lock_all(0, win));
    constructors();
    hole();
    // Handles of freed types come back for others.
    for (int i = 0; i < 20; i++)
        moves(indexed(i % 5, 1 + i % 7), 1, i % 5, 1 + i % 7, i % 3);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
