// The accumulate calls with derived datatypes that have holes on both sides, on created windows.
// What the types do not cover stays as it was. MPI-4.1 sections 12.2.1 and 12.3.4.
// ranks: 1 2 4
// plain ranks: 1 2

#include "shapes.h"

static int *memory;
static MPI_Win win;

// What a fetch must have left in `got`: `factor` times the origin's values where its type covers
// it.
static void fetched(const int *got, const int *mine, int factor, const struct side *from,
                    int from_shape, int to_shape)
{
    int want[INTS];
    for (int i = 0; i < INTS; i++)
        want[i] = 7;
    for (int i = 0; i < HELD; i++)
        want[from->places[i]] = factor * mine[from->places[i]];
    same(got, want, "what came back", from_shape, to_shape);
}

static void try(int from_shape, int to_shape)
{
    static int mine[INTS], first[INTS], second[INTS], want[INTS];
    struct side from = side_of(from_shape), to = side_of(to_shape);
    const int target = next_rank();
    for (int i = 0; i < INTS; i++) {
        mine[i] = 10000 * (rank + 1) + i;
        first[i] = second[i] = 7;
        memory[i] = want[i] = -i;
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(mine + MIDDLE, from.count, from.type, target, MIDDLE, to.count, to.type,
                      MPI_REPLACE, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(mine + MIDDLE, from.count, from.type, target, MIDDLE, to.count, to.type,
                      MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(mine + MIDDLE, from.count, from.type, first + MIDDLE, from.count,
                          from.type, target, MIDDLE, to.count, to.type, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_INT, second + MIDDLE, from.count, from.type, target, MIDDLE,
                          to.count, to.type, MPI_NO_OP, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < HELD; i++)
        want[to.places[i]] = 3 * (10000 * (previous_rank() + 1) + from.places[i]);
    same(memory, want, "the window", from_shape, to_shape);
    fetched(first, mine, 2, &from, from_shape, to_shape);
    fetched(second, mine, 3, &from, from_shape, to_shape);
    OK(MPI_Type_free(&from.type));
    OK(MPI_Type_free(&to.type));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    memory = heap_memory(INTS * sizeof(int));
    win = window_over(memory, INTS * sizeof(int), sizeof(int));
    for (int from = 0; from < SHAPES; from++)
        for (int to = 0; to < SHAPES; to++)
            try(from, to);
    OK(MPI_Win_free(&win));
    return check_end();
}
