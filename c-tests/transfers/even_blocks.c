// Types whose data are blocks of one length at equal distances: vectors, several items, items with
// holes between them, on one side or on both. Each call is made twice: the first one finds out what
// the types are, the second one knows.
// MPI-4.1 sections 12.3.1, 12.3.2 and 5.1.2.
// ranks: 1 2 4

#include "check.h"

enum { LONGS = 96, MIDDLE = 48 };

// `items` items that are `extent` longs apart, each of `blocks` blocks that are `stride` longs apart.
struct shape {
    int first, length, blocks, stride, items, extent;
};

static long *base, theirs[LONGS], sent[LONGS], got[LONGS], expected[LONGS];
static MPI_Win win;

// Between stores of one rank and calls of others.
static void step(void)
{
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
}

static MPI_Datatype type_of(struct shape of)
{
    MPI_Datatype vector, placed, type;
    MPI_Aint place = of.first * (MPI_Aint)sizeof(long);
    int one = 1;
    OK(MPI_Type_vector(of.blocks, of.length, of.stride, MPI_LONG, &vector));
    OK(MPI_Type_create_hindexed(1, &one, &place, vector, &placed));
    OK(MPI_Type_create_resized(placed, 0, of.extent * (MPI_Aint)sizeof(long), &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&vector));
    OK(MPI_Type_free(&placed));
    return type;
}

// The places of all longs, in the order of the type map. Returns their number.
static int places_of(struct shape of, int places[LONGS])
{
    int n = 0;
    for (int item = 0; item < of.items; item++)
        for (int block = 0; block < of.blocks; block++)
            for (int i = 0; i < of.length; i++)
                places[n++] = of.first + item * of.extent + block * of.stride + i;
    return n;
}

static void moves(struct shape here, struct shape there)
{
    MPI_Datatype from = type_of(here), to = type_of(there);
    int from_places[LONGS], to_places[LONGS], n = places_of(here, from_places);
    CHECK_EQ(places_of(there, to_places), n);
    for (int time = 0; time < 2; time++) {
        for (int i = 0; i < LONGS; i++) {
            sent[i] = 100 * rank + i + 1000 * time;
            theirs[i] = 100 * previous_rank() + i + 1000 * time;
            base[i] = expected[i] = -2;
        }
        step();
        OK(MPI_Put(sent + MIDDLE, here.items, from, next_rank(), MIDDLE, there.items, to, win));
        step();
        for (int i = 0; i < n; i++)
            expected[MIDDLE + to_places[i]] = theirs[MIDDLE + from_places[i]];
        for (int i = 0; i < LONGS; i++)
            CHECK_EQ(base[i], expected[i]);
        step();
        for (int i = 0; i < LONGS; i++) {
            base[i] = 100 * rank + i + 7000 * time;
            theirs[i] = 100 * next_rank() + i + 7000 * time;
            got[i] = expected[i] = -3;
        }
        step();
        OK(MPI_Get(got + MIDDLE, here.items, from, next_rank(), MIDDLE, there.items, to, win));
        OK(MPI_Win_flush_local(next_rank(), win));
        for (int i = 0; i < n; i++)
            expected[MIDDLE + from_places[i]] = theirs[MIDDLE + to_places[i]];
        for (int i = 0; i < LONGS; i++)
            CHECK_EQ(got[i], expected[i]);
        step();
    }
    OK(MPI_Type_free(&from));
    OK(MPI_Type_free(&to));
}

int main(int argc, char **argv)
{
    // Each of twelve longs.
    static const struct shape shapes[] = {
        {0, 12, 1, 12, 1, 12},  // one block
        {3, 1, 12, 2, 1, 24},   // words
        {0, 2, 6, 3, 1, 20},    // pairs
        {-5, 3, 4, 5, 1, 30},   // threes
        {0, 4, 3, 9, 1, 32},
        {1, 6, 2, 11, 1, 32},
        {0, 1, 1, 1, 12, 3},    // items with holes between them
        {2, 4, 1, 4, 3, 7},
        {0, 2, 2, 4, 3, 8},     // items that go on at the same distance
        {0, 2, 2, 4, 3, 9},     // and that do not
        {0, 1, 3, 2, 4, 6},
        {0, 3, 1, 3, 4, 3},     // items that touch
        {30, 1, 12, -2, 1, 40}, // backwards
        {30, 2, 1, 2, 6, -4},
    };
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    check_start(&argc, &argv);
    base = window_of(sizeof(long) * LONGS, sizeof(long), &win);
    OK(MPI_Win_lock_all(0, win));
    for (int here = 0; here < SHAPES; here++)
        for (int there = here % 3; there < SHAPES; there += 3)
            moves(shapes[here], shapes[there]);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
