// Put and get with derived datatypes that have holes on both sides, on created windows. What the
// types do not cover stays as it was. MPI-4.1 sections 12.2.1 and 12.3.
// ranks: 1 2 4
// settings: FOMPI_ADOPT=never
// plain ranks: 1 2

#include "shapes.h"

#include <stddef.h>

static int *memory;
static MPI_Win win;

// Puts and gets; then the same by the oracle's places.
static void try(int from_shape, int to_shape)
{
    static int mine[INTS], got[INTS], want[INTS];
    struct side from = side_of(from_shape), to = side_of(to_shape);
    for (int i = 0; i < INTS; i++) {
        mine[i] = 10000 * (rank + 1) + i;
        got[i] = 7;
        memory[i] = want[i] = -i;
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine + MIDDLE, from.count, from.type, next_rank(), MIDDLE, to.count, to.type, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(got + MIDDLE, from.count, from.type, next_rank(), MIDDLE, to.count, to.type, win));
    // A type may be freed once the call has returned.
    OK(MPI_Type_free(&from.type));
    OK(MPI_Type_free(&to.type));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < HELD; i++)
        want[to.places[i]] = 10000 * (previous_rank() + 1) + from.places[i];
    same(memory, want, "the window", from_shape, to_shape);
    for (int i = 0; i < INTS; i++)
        want[i] = 7;
    for (int i = 0; i < HELD; i++)
        want[from.places[i]] = mine[from.places[i]];
    same(got, want, "what came back", from_shape, to_shape);
}

// Records of several basic types with gaps between their fields.
static void records(void)
{
    struct record { char letter; double number; short small; } mine[9], got[9];
    const int lengths[3] = {1, 1, 1};
    const MPI_Aint places[3] = {0, offsetof(struct record, number), offsetof(struct record, small)};
    const MPI_Datatype fields[3] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT};
    MPI_Datatype tight, type;
    OK(MPI_Type_create_struct(3, lengths, places, fields, &tight));
    OK(MPI_Type_create_resized(tight, 0, sizeof(struct record), &type));
    OK(MPI_Type_commit(&type));
    memset(mine, 0x11, sizeof mine);
    memset(got, 0x22, sizeof got);
    memset(memory, 0x33, INTS * sizeof(int));
    for (int i = 0; i < 9; i++) {
        mine[i].letter = (char)('a' + i);
        mine[i].number = rank + 0.5 * i;
        mine[i].small = (short)(100 * rank + i);
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine, 9, type, next_rank(), 8, 9, type, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(got, 9, type, next_rank(), 8, 9, type, win));
    OK(MPI_Win_fence(0, win));
    const struct record *theirs = (const struct record *)(memory + 8);
    for (int i = 0; i < 9; i++) {
        CHECK(theirs[i].letter == 'a' + i && theirs[i].number == previous_rank() + 0.5 * i);
        CHECK_EQ(theirs[i].small, 100 * previous_rank() + i);
        CHECK_EQ(((const char *)&theirs[i])[1], 0x33);
        CHECK_EQ(((const char *)&theirs[i])[sizeof *theirs - 1], 0x33);
        CHECK(got[i].letter == 'a' + i && got[i].number == mine[i].number);
        CHECK_EQ(got[i].small, mine[i].small);
        CHECK_EQ(((const char *)&got[i])[1], 0x22);
    }
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&tight));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    memory = heap_memory(INTS * sizeof(int));
    win = window_over(memory, INTS * sizeof(int), sizeof(int));
    for (int from = 0; from < SHAPES; from++)
        for (int to = 0; to < SHAPES; to++)
            try(from, to);
    records();
    OK(MPI_Win_free(&win));
    return check_end();
}
