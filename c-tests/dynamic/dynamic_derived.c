// Derived datatypes on both sides of transfers to attached memory: with holes, negative lower
// bounds, thousands of blocks; what lies in the holes is neither read nor written.
// MPI-4.1 sections 12.3 and 5.1.
// ranks: 1 2 4

#include "dynamic.h"

enum { INTS = 20000, MIDDLE = INTS / 2, BLOCKS = 4000 };

static MPI_Win win;
static MPI_Aint there;
static int memory[INTS], local[INTS], image[INTS];

// A type of ints, and which ints relative to its origin it is made of.
struct shape {
    MPI_Datatype type;
    int count, places[BLOCKS];
};

static void vector(struct shape *shape, int blocks, int stride)
{
    shape->count = blocks;
    for (int i = 0; i < blocks; i++)
        shape->places[i] = i * stride;
    OK(MPI_Type_vector(blocks, 1, stride, MPI_INT, &shape->type));
    OK(MPI_Type_commit(&shape->type));
}

// Blocks of one to three ints, in no order, before and after the origin.
static void indexed(struct shape *shape)
{
    const int lengths[5] = {3, 1, 2, 1, 3}, places[5] = {40, -17, -60, 0, 7};
    shape->count = 0;
    for (int block = 0; block < 5; block++)
        for (int i = 0; i < lengths[block]; i++)
            shape->places[shape->count++] = places[block] + i;
    OK(MPI_Type_indexed(5, lengths, places, MPI_INT, &shape->type));
    OK(MPI_Type_commit(&shape->type));
}

// A struct of a resized vector (its lower bound is not its first byte) and an int far before it.
static void nested(struct shape *shape)
{
    const int lengths[2] = {2, 1};
    const MPI_Aint places[2] = {12 * sizeof(int), -30 * (MPI_Aint)sizeof(int)};
    MPI_Datatype inner, resized, types[2];
    OK(MPI_Type_vector(2, 2, 5, MPI_INT, &inner));
    OK(MPI_Type_create_resized(inner, -8, 11 * sizeof(int), &resized));
    types[0] = resized;
    types[1] = MPI_INT;
    OK(MPI_Type_create_struct(2, lengths, places, types, &shape->type));
    OK(MPI_Type_commit(&shape->type));
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_free(&resized));
    const int filled[9] = {12, 13, 17, 18, 23, 24, 28, 29, -30};
    shape->count = 9;
    memcpy(shape->places, filled, sizeof filled);
}

static void square(struct shape *shape)
{
    const int sizes[2] = {10, 12}, parts[2] = {3, 4}, starts[2] = {5, 6};
    shape->count = 12;
    for (int i = 0; i < 12; i++)
        shape->places[i] = (5 + i / 4) * 12 + 6 + i % 4;
    OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &shape->type));
    OK(MPI_Type_commit(&shape->type));
}

static int initial(int owner, int i) { return 1000000 * (owner + 1) + i; }

// Puts and adds through the shape at the target, from ints in a row; gets them into the shape here.
static void transfer(const struct shape *shape)
{
    static int values[BLOCKS], ones[BLOCKS];
    const int target = next_rank(), count = shape->count;
    for (int i = 0; i < count; i++) {
        values[i] = -1 - i;
        ones[i] = -10000;
    }
    memset(local, 0, sizeof local);
    OK(MPI_Get(local + MIDDLE, 1, shape->type, target, there, 1, shape->type, win));
    OK(MPI_Win_flush(target, win));
    memset(image, 0, sizeof image);
    for (int i = 0; i < count; i++)
        image[MIDDLE + shape->places[i]] = initial(target, MIDDLE + shape->places[i]);
    CHECK(memcmp(local, image, sizeof local) == 0);
    settle(win);
    OK(MPI_Put(values, count, MPI_INT, target, there, 1, shape->type, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Accumulate(ones, count, MPI_INT, target, there, 1, shape->type, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    memset(local, 0, sizeof local);
    OK(MPI_Get(local, count, MPI_INT, target, there, 1, shape->type, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < count; i++)
        CHECK_EQ(local[i], -10001 - i);
}

static void was_reached(const struct shape *shape)
{
    for (int i = 0; i < INTS; i++)
        image[i] = initial(rank, i);
    for (int i = 0; i < shape->count; i++)
        image[MIDDLE + shape->places[i]] = -10001 - i;
    for (int i = 0; i < INTS; i++)
        CHECK_EQ(memory[i], image[i]);
}

static void one_shape(struct shape *shape)
{
    for (int i = 0; i < INTS; i++)
        memory[i] = initial(rank, i);
    settle(win);
    transfer(shape);
    settle(win);
    was_reached(shape);
    settle(win);
    OK(MPI_Type_free(&shape->type));
}

int main(int argc, char **argv)
{
    static struct shape shape;
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    win = dynamic_window();
    OK(MPI_Win_attach(win, memory, sizeof memory));
    exchange(memory + MIDDLE, places);
    there = places[next_rank()];
    OK(MPI_Win_lock_all(0, win));
    vector(&shape, 50, 3);
    one_shape(&shape);
    vector(&shape, 50, -3);
    one_shape(&shape);
    vector(&shape, BLOCKS, 2);
    one_shape(&shape);
    indexed(&shape);
    one_shape(&shape);
    nested(&shape);
    one_shape(&shape);
    square(&shape);
    one_shape(&shape);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
    return check_end();
}
