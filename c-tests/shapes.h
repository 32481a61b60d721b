// Shapes of derived datatypes with holes, and where by the oracle of MPI_Unpack their integers lie.

#ifndef SHAPES_H
#define SHAPES_H

#include "created.h"

enum { INTS = 512, MIDDLE = 128, SHAPES = 7, HELD = 24 };

// Each shape holds 24 integers with `counts[shape]` of its type.
static const int counts[SHAPES] = {24, 1, 1, 1, 6, 2, 1};

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
    MPI_Datatype four, type = MPI_DATATYPE_NULL;
    switch (shape) {
    case 0: OK(MPI_Type_contiguous(1, MPI_INT, &type)); break;
    case 1: OK(MPI_Type_vector(8, 3, 5, MPI_INT, &type)); break;
    case 2: OK(MPI_Type_indexed(4, lengths, places, MPI_INT, &type)); break;
    case 3: OK(MPI_Type_create_indexed_block(8, 3, blocks, MPI_INT, &type)); break;
    case 4:
        OK(MPI_Type_contiguous(4, MPI_INT, &four));
        OK(MPI_Type_create_resized(four, 0, 28, &type));
        OK(MPI_Type_free(&four));
        break;
    case 5: type = nested(); break;
    case 6: OK(MPI_Type_create_hvector(12, 2, -12, MPI_INT, &type)); break;
    }
    OK(MPI_Type_commit(&type));
    return type;
}

// The oracle: which integers from MIDDLE on a shape covers, in its order.
static void places_of(int shape, MPI_Datatype type, int *places)
{
    int numbers[HELD], image[INTS], position = 0;
    for (int i = 0; i < HELD; i++)
        numbers[i] = i;
    for (int i = 0; i < INTS; i++)
        image[i] = -1;
    OK(MPI_Unpack(numbers, sizeof numbers, &position, image + MIDDLE, counts[shape], type,
                  MPI_COMM_WORLD));
    for (int i = 0; i < INTS; i++)
        if (image[i] >= 0)
            places[image[i]] = i;
}

struct side {
    MPI_Datatype type;
    int count, places[HELD];
};

UNUSED static struct side side_of(int shape)
{
    struct side side = {shape_of(shape), counts[shape], {0}};
    places_of(shape, side.type, side.places);
    return side;
}

UNUSED static void same(const int *got, const int *want, const char *what, int from, int to)
{
    for (int i = 0; i < INTS; i++)
        if (got[i] != want[i])
            check_failed(__FILE__, __LINE__, "%s, shapes %d and %d: integer %d is %d, not %d", what,
                         from, to, i, got[i], want[i]);
}

#endif
