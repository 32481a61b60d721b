// Transfers of thousands of blocks, far more than one call of the system takes (IOV_MAX is 1,024):
// cut differently at origin and target, in order and out of order. MPI-4.1 section 12.3.
// ranks: 1 2 4
// settings: FOMPI_ADOPT=never

#include "created.h"

enum { HELD = 12000, INTS = 3 * HELD, LAYOUTS = 6 };

// Where integer `i` of a layout lies. Each layout is a permutation of places with holes.
static int place_of(int layout, int i)
{
    switch (layout) {
    case 0: return i;
    case 1: return 2 * i;
    case 2: return i / 3 * 7 + i % 3;
    case 3: return i / 40 * 41 + i % 40;
    // Backwards, and jumping about: 7 has no divisor in common with HELD.
    case 4: return 2 * (HELD - 1 - i);
    case 5: return (int)((long)i * 7 % HELD) * 2 + 1;
    }
    return -1;
}

static MPI_Datatype layout_of(int layout)
{
    static int places[HELD];
    MPI_Datatype type;
    for (int i = 0; i < HELD; i++)
        places[i] = place_of(layout, i);
    switch (layout) {
    case 0: OK(MPI_Type_contiguous(HELD, MPI_INT, &type)); break;
    case 1: OK(MPI_Type_vector(HELD, 1, 2, MPI_INT, &type)); break;
    case 2: OK(MPI_Type_vector(HELD / 3, 3, 7, MPI_INT, &type)); break;
    case 3: OK(MPI_Type_vector(HELD / 40, 40, 41, MPI_INT, &type)); break;
    default: OK(MPI_Type_create_indexed_block(HELD, 1, places, MPI_INT, &type)); break;
    }
    OK(MPI_Type_commit(&type));
    return type;
}

static void same(const int *got, const int *want, const char *what, int from, int to)
{
    for (int i = 0; i < INTS; i++)
        if (got[i] != want[i])
            check_failed(__FILE__, __LINE__, "%s, layouts %d and %d: integer %d is %d, not %d",
                         what, from, to, i, got[i], want[i]);
}

static void try(MPI_Win win, int *memory, int from_layout, int to_layout)
{
    static int mine[INTS], got[INTS], want[INTS];
    MPI_Datatype from = layout_of(from_layout), to = layout_of(to_layout);
    for (int i = 0; i < INTS; i++) {
        mine[i] = 100000 * (rank + 1) + i;
        got[i] = 7;
        memory[i] = want[i] = -i;
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine, 1, from, next_rank(), 0, 1, to, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(mine, 1, from, next_rank(), 0, 1, to, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(got, 1, from, next_rank(), 0, 1, to, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < HELD; i++)
        want[place_of(to_layout, i)] =
            2 * (100000 * (previous_rank() + 1) + place_of(from_layout, i));
    same(memory, want, "the window", from_layout, to_layout);
    for (int i = 0; i < INTS; i++)
        want[i] = 7;
    for (int i = 0; i < HELD; i++)
        want[place_of(from_layout, i)] = 2 * mine[place_of(from_layout, i)];
    same(got, want, "what came back", from_layout, to_layout);
    OK(MPI_Type_free(&from));
    OK(MPI_Type_free(&to));
}

// Every second byte.
static void single_bytes(void)
{
    const int blocks = 5000;
    MPI_Datatype type;
    char *memory = heap_memory(2 * blocks), *mine = heap_memory(2 * blocks);
    memset(memory, 1, 2 * blocks);
    memset(mine, 40 + rank, 2 * blocks);
    MPI_Win win = window_over(memory, 2 * blocks, 1);
    OK(MPI_Type_vector(blocks, 1, 2, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Put(mine, 1, type, next_rank(), 1, 1, type, win));
    OK(MPI_Win_unlock(next_rank(), win));
    lock_own_memory(win);
    for (int i = 0; i < 2 * blocks; i++)
        CHECK_EQ(memory[i], i % 2 == 0 ? 1 : 40 + previous_rank());
    unlock_own_memory(win);
    OK(MPI_Type_free(&type));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int *memory = heap_memory(INTS * sizeof(int));
    MPI_Win win = window_over(memory, INTS * sizeof(int), sizeof(int));
    for (int from = 0; from < LAYOUTS; from++)
        for (int to = 0; to < LAYOUTS; to++)
            try(win, memory, from, to);
    OK(MPI_Win_free(&win));
    single_bytes();
    return check_end();
}
