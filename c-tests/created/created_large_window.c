// Windows of 6 GiB that are hardly touched: places beyond 2^31 and 2^32 bytes, blocks that lie
// gigabytes apart, elements across these borders. MPI-4.1 sections 12.2.1 and 12.3.
// ranks: 1 2 4

#include "created.h"

#include <sys/mman.h>

enum { BLOCKS = 6, COUNT = 600 };

static const MPI_Aint gibibyte = (MPI_Aint)1 << 30;
static char *memory;
static MPI_Win win;

// The long at a place of the own window.
static long at(MPI_Aint place)
{
    long value;
    memcpy(&value, memory + place, sizeof value);
    return value;
}

// Across the border of `place` bytes.
static void around(MPI_Aint place)
{
    const MPI_Aint disp = place - 8 * (COUNT / 2) - 4;
    const long one = 1;
    long values[COUNT], got[COUNT], before;
    for (int i = 0; i < COUNT; i++)
        values[i] = 1000 * rank + i;
    OK(MPI_Put(values, COUNT, MPI_LONG, next_rank(), disp, COUNT, MPI_LONG, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Accumulate(values, COUNT, MPI_LONG, next_rank(), disp, COUNT, MPI_LONG, MPI_SUM, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, next_rank(), disp + 8, MPI_SUM, win));
    OK(MPI_Win_flush(next_rank(), win));
    CHECK_EQ(before, 2 * values[1]);
    OK(MPI_Get(got, COUNT, MPI_LONG, next_rank(), disp, COUNT, MPI_LONG, win));
    OK(MPI_Win_flush(next_rank(), win));
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(got[i], 2 * values[i] + (i == 1));
}

static void arrived_around(MPI_Aint place)
{
    const MPI_Aint disp = place - 8 * (COUNT / 2) - 4;
    CHECK_EQ(at(disp - 8), 0);
    CHECK_EQ(at(disp + 8 * COUNT), 0);
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(at(disp + 8 * i), 2 * (1000 * previous_rank() + i) + (i == 1));
}

// One block in each gibibyte of the window, by one datatype.
static void blocks_far_apart(MPI_Datatype far)
{
    long values[BLOCKS], got[BLOCKS] = {0};
    for (int i = 0; i < BLOCKS; i++)
        values[i] = 100 * rank + i + 1;
    OK(MPI_Put(values, BLOCKS, MPI_LONG, next_rank(), 8192, 1, far, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Get(got, BLOCKS, MPI_LONG, next_rank(), 8192, 1, far, win));
    OK(MPI_Win_flush(next_rank(), win));
    CHECK(memcmp(got, values, sizeof got) == 0);
    // The origin may be as far apart: into the own window and out of it.
    OK(MPI_Get(memory + 16384, 1, far, next_rank(), 8192, 1, far, win));
    OK(MPI_Win_flush(next_rank(), win));
    for (int i = 0; i < BLOCKS; i++)
        CHECK_EQ(at(16384 + i * gibibyte), values[i]);
}

int main(int argc, char **argv)
{
    const MPI_Aint bytes = BLOCKS * gibibyte;
    MPI_Datatype far;
    check_start(&argc, &argv);
    memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    win = window_over(memory, bytes, 1);
    OK(MPI_Type_create_hvector(BLOCKS, 1, gibibyte, MPI_LONG, &far));
    OK(MPI_Type_commit(&far));
    const MPI_Aint borders[4] = {gibibyte, 2 * gibibyte, 4 * gibibyte, bytes - 3000};
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < 4; i++)
        around(borders[i]);
    blocks_far_apart(far);
    OK(MPI_Win_unlock_all(win));
    lock_own_memory(win);
    for (int i = 0; i < 4; i++)
        arrived_around(borders[i]);
    for (int i = 0; i < BLOCKS; i++)
        CHECK_EQ(at(8192 + i * gibibyte), 100 * previous_rank() + i + 1);
    unlock_own_memory(win);
    OK(MPI_Type_free(&far));
    OK(MPI_Win_free(&win));
    return check_end();
}
