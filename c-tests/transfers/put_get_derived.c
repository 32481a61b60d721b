// Put and get with derived datatypes: vector, indexed, struct, subarray, resized, nested, negative
// lower bounds, different at origin and target. What they do not cover stays as it was.
// MPI-4.1 section 12.3.1.
// ranks: 1 2 4
// plain ranks: 1 2

#include "check.h"

enum { INTS = 1024, MIDDLE = 256 };

// The oracle: pack at the origin, unpack at the target.
static void move_by_packing(const int *from, int from_count, MPI_Datatype from_type, int *to,
                            int to_count, MPI_Datatype to_type)
{
    static char packed[INTS * sizeof(int) * 2];
    int position = 0, bytes;
    OK(MPI_Pack(from, from_count, from_type, packed, sizeof packed, &position, MPI_COMM_WORLD));
    bytes = position;
    position = 0;
    OK(MPI_Unpack(packed, bytes, &position, to, to_count, to_type, MPI_COMM_WORLD));
}

static void same(const int *got, const int *want, int origin_shape, int target_shape)
{
    for (int i = 0; i < INTS; i++)
        if (got[i] != want[i])
            check_failed(__FILE__, __LINE__, "shapes %d to %d: integer %d is %d, not %d",
                         origin_shape, target_shape, i, got[i], want[i]);
}

enum { SHAPES = 9 };

// Each shape holds 24 integers with `counts[shape]` of its type.
static const int counts[SHAPES] = {24, 1, 1, 1, 1, 6, 1, 2, 1};

static MPI_Datatype subarray(void)
{
    const int sizes[3] = {5, 6, 7}, parts[3] = {2, 3, 4}, starts[3] = {1, 2, 3};
    MPI_Datatype type;
    OK(MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type));
    return type;
}

static MPI_Datatype structure(void)
{
    const int lengths[3] = {4, 8, 12};
    const MPI_Aint places[3] = {400, 0, 160};
    const MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Datatype type;
    OK(MPI_Type_create_struct(3, lengths, places, types, &type));
    return type;
}

static MPI_Datatype nested(void)
{
    MPI_Datatype inner, padded, type;
    OK(MPI_Type_vector(2, 2, 3, MPI_INT, &inner));
    OK(MPI_Type_create_resized(inner, -8, 40, &padded));
    OK(MPI_Type_vector(3, 1, 2, padded, &type));
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_free(&padded));
    return type;
}

static MPI_Datatype shape_of(int shape)
{
    const int lengths[4] = {3, 9, 1, 11}, places[4] = {50, 0, 20, 30};
    const int blocks[8] = {70, 3, 60, 12, 44, 30, 0, 90};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    switch (shape) {
    case 0: OK(MPI_Type_contiguous(1, MPI_INT, &type)); break;
    case 1: OK(MPI_Type_vector(8, 3, 5, MPI_INT, &type)); break;
    case 2: OK(MPI_Type_indexed(4, lengths, places, MPI_INT, &type)); break;
    case 3: OK(MPI_Type_create_indexed_block(8, 3, blocks, MPI_INT, &type)); break;
    case 4: type = structure(); break;
    case 5: {
        MPI_Datatype four;
        OK(MPI_Type_contiguous(4, MPI_INT, &four));
        OK(MPI_Type_create_resized(four, 0, 28, &type));
        OK(MPI_Type_free(&four));
        break;
    }
    case 6: type = subarray(); break;
    case 7: type = nested(); break;
    case 8: OK(MPI_Type_create_hvector(12, 2, -12, MPI_INT, &type)); break;
    }
    OK(MPI_Type_commit(&type));
    return type;
}

static void try(int origin_shape, int target_shape, int *base, MPI_Win win)
{
    static int mine[INTS], want[INTS], theirs[INTS];
    MPI_Datatype from = shape_of(origin_shape), to = shape_of(target_shape);
    int from_count = counts[origin_shape], to_count = counts[target_shape];
    for (int i = 0; i < INTS; i++) {
        mine[i] = 10000 + i;
        base[i] = want[i] = -i;
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine + MIDDLE, from_count, from, next_rank(), MIDDLE, to_count, to, win));
    OK(MPI_Win_fence(0, win));
    move_by_packing(mine + MIDDLE, from_count, from, want + MIDDLE, to_count, to);
    same(base, want, origin_shape, target_shape);

    // And back: what the target type picks comes into the shape of the origin.
    memcpy(theirs, base, sizeof theirs);
    for (int i = 0; i < INTS; i++)
        mine[i] = want[i] = 7;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(mine + MIDDLE, from_count, from, next_rank(), MIDDLE, to_count, to, win));
    // A type may be freed once the call has returned.
    OK(MPI_Type_free(&from));
    OK(MPI_Type_free(&to));
    OK(MPI_Win_fence(0, win));
    from = shape_of(origin_shape);
    to = shape_of(target_shape);
    move_by_packing(theirs + MIDDLE, to_count, to, want + MIDDLE, from_count, from);
    same(mine, want, origin_shape, target_shape);
    OK(MPI_Type_free(&from));
    OK(MPI_Type_free(&to));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    int *base = window_of(INTS * sizeof(int), sizeof(int), &win);
    for (int origin_shape = 0; origin_shape < SHAPES; origin_shape++)
        for (int target_shape = 0; target_shape < SHAPES; target_shape++)
            try(origin_shape, target_shape, base, win);
    OK(MPI_Win_free(&win));
    return check_end();
}
