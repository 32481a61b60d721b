// Transfers of many megabytes to attached memory, contiguous, strided and accumulated, that begin
// at no page border. MPI-4.1 sections 12.2.4 and 12.3.
// ranks: 2

#include "dynamic.h"

enum { LONGS = 3 << 20, FIRST = 5, COUNT = LONGS - 2 * FIRST, BLOCKS = 100000 };
enum { WORDS = 1 << 15, HALVES = 2 * (COUNT - WORDS) };

static MPI_Win win;
static long *memory, *values;

static long mark(int origin, int i) { return 7 * origin + (long)i * 3; }

static void whole(MPI_Aint there)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = mark(rank, i);
    OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), there, COUNT, MPI_LONG, win));
    OK(MPI_Win_flush(next_rank(), win));
    // A word may be a request to a device, so most go as halves, and the upper halves are 0.
    OK(MPI_Accumulate(values, WORDS, MPI_LONG, next_rank(), there, WORDS, MPI_LONG, MPI_SUM, win));
    OK(MPI_Accumulate(values + WORDS, HALVES, MPI_INT32_T, next_rank(),
                      MPI_Aint_add(there, WORDS * sizeof(long)), HALVES, MPI_INT32_T, MPI_SUM, win));
    OK(MPI_Win_flush(next_rank(), win));
    memset(values, 0, LONGS * sizeof(long));
    OK(MPI_Get(values, COUNT, MPI_LONG, next_rank(), there, COUNT, MPI_LONG, win));
    OK(MPI_Win_flush(next_rank(), win));
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(values[i], 2 * mark(rank, i));
}

// Blocks of seven at a distance of twenty, far more than one call of the system takes.
static void strided(MPI_Aint there)
{
    MPI_Datatype type;
    OK(MPI_Type_vector(BLOCKS, 7, 20, MPI_LONG, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < 7 * BLOCKS; i++)
        values[i] = -i;
    OK(MPI_Put(values, 7 * BLOCKS, MPI_LONG, next_rank(), there, 1, type, win));
    OK(MPI_Win_flush(next_rank(), win));
    memset(values, 0, LONGS * sizeof(long));
    OK(MPI_Get(values, 1, type, next_rank(), there, 1, type, win));
    OK(MPI_Win_flush(next_rank(), win));
    for (int i = 0; i < 20 * (BLOCKS - 1) + 7; i++)
        CHECK_EQ(values[i], i % 20 < 7 ? -(i / 20 * 7 + i % 20) : 0);
    OK(MPI_Type_free(&type));
}

static void was_reached(void)
{
    for (int i = 0; i < FIRST; i++)
        CHECK(memory[i] == -1 && memory[LONGS - 1 - i] == -1);
    for (int i = 0; i < COUNT; i++) {
        const int block = i / 20, within = i % 20;
        const long want = block < BLOCKS && within < 7 ? -(long)(7 * block + within)
                                                       : 2 * mark(previous_rank(), i);
        CHECK_EQ(memory[FIRST + i], want);
    }
}

int main(int argc, char **argv)
{
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    win = dynamic_window();
    memory = malloc(LONGS * sizeof(long));
    values = malloc(LONGS * sizeof(long));
    CHECK(memory != NULL && values != NULL);
    for (int i = 0; i < LONGS; i++)
        memory[i] = -1;
    OK(MPI_Win_attach(win, memory, LONGS * sizeof(long)));
    exchange(memory + FIRST, places);
    OK(MPI_Win_lock_all(0, win));
    whole(places[next_rank()]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    strided(places[next_rank()]);
    settle(win);
    was_reached();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
    free(memory);
    free(values);
    return check_end();
}
