// Puts, gets and accumulates of thousands of blocks, which one request between nodes cannot have:
// at equal and at irregular places, in both directions, short and long, on one side or on both.
// What they do not cover stays as it was. MPI-4.1 sections 12.3.1, 12.3.2, 12.3.4.
// ranks: 2 3
// plain ranks: 2

#include "check.h"

enum { INTS = 1 << 16, DATA = 24000, MIDDLE = INTS / 2, SHAPES = 9 };

static int mine[INTS], theirs[INTS], want[INTS], got[INTS], result[INTS];

// Blocks of one to five integers, with gaps of one to three behind them.
static MPI_Datatype irregular(int backwards)
{
    static int lengths[DATA], places[DATA];
    int blocks = 0, data = 0, at = -MIDDLE;
    for (; data < DATA; blocks++) {
        lengths[blocks] = blocks % 7 % 5 + 1;
        if (data + lengths[blocks] > DATA)
            lengths[blocks] = DATA - data;
        places[blocks] = at;
        data += lengths[blocks];
        at += lengths[blocks] + blocks % 3 % 2 + 1;
    }
    CHECK(at <= MIDDLE);
    for (int i = 0; backwards && i < blocks / 2; i++) {
        int place = places[i], length = lengths[i];
        places[i] = places[blocks - 1 - i];
        lengths[i] = lengths[blocks - 1 - i];
        places[blocks - 1 - i] = place;
        lengths[blocks - 1 - i] = length;
    }
    MPI_Datatype type;
    OK(MPI_Type_indexed(blocks, lengths, places, MPI_INT, &type));
    return type;
}

// Single integers; each may be next to the one before it.
static MPI_Datatype singles(void)
{
    static int places[DATA];
    for (int i = 0, at = -MIDDLE; i < DATA; at += i % 5 % 3 + 1, i++)
        places[i] = at;
    MPI_Datatype type;
    OK(MPI_Type_create_indexed_block(DATA, 1, places, MPI_INT, &type));
    return type;
}

// Each shape has DATA integers between -MIDDLE and MIDDLE.
static MPI_Datatype shape_of(int shape)
{
    MPI_Datatype type = MPI_DATATYPE_NULL, inner;
    switch (shape) {
    case 0: OK(MPI_Type_contiguous(DATA, MPI_INT, &type)); break;
    case 1: OK(MPI_Type_vector(DATA, 1, -1, MPI_INT, &type)); break;
    case 2: OK(MPI_Type_vector(DATA / 2, 2, -2, MPI_INT, &type)); break;
    case 3: OK(MPI_Type_vector(DATA / 3, 3, 4, MPI_INT, &type)); break;
    case 4: OK(MPI_Type_vector(4, DATA / 4, DATA / 4 + 100, MPI_INT, &type)); break;
    case 5: type = irregular(0); break;
    case 6: type = irregular(1); break;
    case 7: type = singles(); break;
    case 8:
        OK(MPI_Type_vector(DATA / 60, 20, 24, MPI_INT, &inner));
        OK(MPI_Type_create_hvector(3, 1, -(DATA / 60 * 24 + 8) * 4, inner, &type));
        OK(MPI_Type_free(&inner));
        break;
    }
    OK(MPI_Type_commit(&type));
    return type;
}

// The oracle: packs on one side, and unpacks on the other.
static void move_by_packing(const int *from, MPI_Datatype from_type, int *to, MPI_Datatype to_type)
{
    static char packed[2 * DATA * sizeof(int)];
    int position = 0, bytes;
    OK(MPI_Pack(from + MIDDLE, 1, from_type, packed, sizeof packed, &position, MPI_COMM_WORLD));
    bytes = position;
    position = 0;
    OK(MPI_Unpack(packed, bytes, &position, to + MIDDLE, 1, to_type, MPI_COMM_WORLD));
}

static void same(const int *left, const int *right, int origin_shape, int target_shape)
{
    for (int i = 0; i < INTS; i++)
        if (left[i] != right[i])
            check_failed(__FILE__, __LINE__, "shapes %d to %d: integer %d is %d, not %d",
                         origin_shape, target_shape, i, left[i], right[i]);
}

static void put_and_get(int shapes[2], MPI_Datatype from, MPI_Datatype to, int *base, MPI_Win win)
{
    for (int i = 0; i < INTS; i++) {
        mine[i] = 100000 + i;
        base[i] = want[i] = -i;
        got[i] = result[i] = 7;
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine + MIDDLE, 1, from, next_rank(), MIDDLE, 1, to, win));
    OK(MPI_Win_fence(0, win));
    move_by_packing(mine, from, want, to);
    same(base, want, shapes[0], shapes[1]);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(got + MIDDLE, 1, from, next_rank(), MIDDLE, 1, to, win));
    OK(MPI_Win_fence(0, win));
    move_by_packing(want, to, result, from);
    same(got, result, shapes[0], shapes[1]);
}

// The target has what the put has left there.
static void accumulate(int shapes[2], MPI_Datatype from, MPI_Datatype to, int *base, MPI_Win win)
{
    static int ones[INTS];
    for (int i = 0; i < INTS; i++) {
        ones[i] = i % 11;
        theirs[i] = base[i];
        got[i] = result[i] = want[i] = 0;
    }
    // What the target gets, and what was there.
    move_by_packing(ones, from, want, to);
    move_by_packing(theirs, to, result, from);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(ones + MIDDLE, 1, from, next_rank(), MIDDLE, 1, to, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < INTS; i++)
        theirs[i] += want[i];
    same(base, theirs, shapes[0], shapes[1]);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(ones + MIDDLE, 1, from, got + MIDDLE, 1, from, next_rank(), MIDDLE, 1, to,
                          MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < INTS; i++) {
        result[i] = 0;
        want[i] += theirs[i];
    }
    move_by_packing(theirs, to, result, from);
    same(got, result, shapes[0], shapes[1]);
    same(base, want, shapes[0], shapes[1]);
    // Results of another shape than the operands, and a read.
    memset(got, 0, sizeof got);
    memset(result, 0, sizeof result);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_INT, got + MIDDLE, DATA, MPI_INT, next_rank(), MIDDLE, 1, to,
                          MPI_NO_OP, win));
    OK(MPI_Win_fence(0, win));
    MPI_Datatype packed = shape_of(0);
    move_by_packing(want, to, result, packed);
    same(got, result, 0, shapes[1]);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(ones + MIDDLE, 1, from, got + MIDDLE, 1, packed, next_rank(), MIDDLE, 1,
                          to, MPI_MAX, win));
    OK(MPI_Win_fence(0, win));
    same(got, result, 0, shapes[1]);
    OK(MPI_Type_free(&packed));
}

// Single bytes and structures with a hole.
static void other_elements(int *base, MPI_Win win)
{
    enum { BYTES = 60000 };
    struct { double number; char letter; } *records = (void *)mine;
    char *bytes = (char *)mine, *there = (char *)base;
    MPI_Datatype every_second, type;
    OK(MPI_Type_vector(BYTES, 1, 2, MPI_BYTE, &every_second));
    OK(MPI_Type_commit(&every_second));
    for (int i = 0; i < (int)sizeof mine; i++) {
        bytes[i] = (char)(i % 101);
        there[i] = -1;
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(bytes, BYTES, MPI_BYTE, next_rank(), 0, 1, every_second, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 2 * BYTES; i++)
        CHECK_EQ(there[i], i % 2 == 0 ? i / 2 % 101 : -1);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(got, BYTES, MPI_BYTE, next_rank(), 0, 1, every_second, win));
    OK(MPI_Win_fence(0, win));
    CHECK(memcmp(got, bytes, BYTES) == 0);
    OK(MPI_Type_free(&every_second));

    const int lengths[2] = {1, 1}, records_count = 2000;
    const MPI_Aint places[2] = {0, 8};
    const MPI_Datatype types[2] = {MPI_DOUBLE, MPI_CHAR};
    OK(MPI_Type_create_struct(2, lengths, places, types, &every_second));
    OK(MPI_Type_create_resized(every_second, 0, sizeof *records, &type));
    OK(MPI_Type_commit(&type));
    memset(base, 0, INTS * sizeof(int));
    for (int i = 0; i < records_count; i++) {
        memset(&records[i], 5, sizeof *records);
        records[i].number = i;
        records[i].letter = (char)(i % 100);
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(records, records_count, type, next_rank(), 0, records_count, type, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < records_count; i++) {
        memset((char *)&records[i] + 9, 0, sizeof *records - 9);
        CHECK(memcmp(&records[i], there + i * (int)sizeof *records, sizeof *records) == 0);
    }
    OK(MPI_Type_free(&every_second));
    OK(MPI_Type_free(&type));
}

// All ranks add to the same blocks of one rank, which are free for one of them at a time.
static void at_once(int *base, MPI_Win win)
{
    enum { ROUNDS = 300, BLOCKS = 16 };
    MPI_Datatype type;
    int ones[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        ones[i] = 1;
    memset(base, 0, INTS * sizeof(int));
    OK(MPI_Type_vector(BLOCKS, 1, 3, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < ROUNDS; i++)
        OK(MPI_Accumulate(ones, BLOCKS, MPI_INT, 0, 0, 1, type, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; rank == 0 && i < 3 * BLOCKS; i++)
        CHECK_EQ(base[i], i % 3 == 0 ? ROUNDS * size : 0);
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    int *base = window_of(INTS * sizeof(int), sizeof(int), &win);
    for (int origin = 0; origin < SHAPES; origin++)
        for (int target = 0; target < SHAPES; target++) {
            MPI_Datatype from = shape_of(origin), to = shape_of(target);
            int shapes[2] = {origin, target};
            put_and_get(shapes, from, to, base, win);
            // A third of the pairs: each shape is on both sides with three others.
            if ((origin + target) % 3 == 0)
                accumulate(shapes, from, to, base, win);
            OK(MPI_Type_free(&from));
            OK(MPI_Type_free(&to));
        }
    other_elements(base, win);
    at_once(base, win);
    OK(MPI_Win_free(&win));
    return check_end();
}
