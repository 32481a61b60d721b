// Regions that abut are attached memory without a gap: one transfer may reach over their borders.
// MPI-4.1 sections 12.2.4 and 12.3.
// ranks: 1 2 4

#include "dynamic.h"

enum { REGIONS = 6, BYTES = 4096, ALL = REGIONS * BYTES };

static MPI_Win win;
static unsigned char memory[ALL];

static unsigned char mark(int origin, int i)
{
    return (unsigned char)(origin * 17 + i * 7 + i / 256);
}

// Puts, adds to and gets `count` bytes from `first` on.
static void over(MPI_Aint there, int first, int count)
{
    static unsigned char values[ALL], ones[ALL], got[ALL];
    const int target = next_rank();
    const MPI_Aint place = MPI_Aint_add(there, first);
    for (int i = 0; i < count; i++) {
        values[i] = mark(rank, i);
        ones[i] = 1;
    }
    OK(MPI_Put(values, count, MPI_BYTE, target, place, count, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Accumulate(ones, count, MPI_UINT8_T, target, place, count, MPI_UINT8_T, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(got, count, MPI_BYTE, target, place, count, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < count; i++)
        CHECK_EQ(got[i], (unsigned char)(mark(rank, i) + 1));
}

static void was_reached(int first, int count)
{
    for (int i = 0; i < ALL; i++) {
        if (i >= first && i < first + count)
            CHECK_EQ(memory[i], (unsigned char)(mark(previous_rank(), i - first) + 1));
        else
            CHECK_EQ(memory[i], 0);
    }
}

static void one_range(MPI_Aint there, int first, int count)
{
    memset(memory, 0, sizeof memory);
    settle(win);
    over(there, first, count);
    settle(win);
    was_reached(first, count);
    settle(win);
}

// One word whose halves lie in two regions.
static void word_on_a_border(MPI_Aint there)
{
    const int64_t value = 0x0102030405060708, one = 1;
    int64_t before = 0;
    const MPI_Aint place = MPI_Aint_add(there, BYTES - 4);
    OK(MPI_Put(&value, 1, MPI_INT64_T, next_rank(), place, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, next_rank(), place, MPI_SUM, win));
    OK(MPI_Win_flush(next_rank(), win));
    CHECK_EQ(before, value);
    settle(win);
    memcpy(&before, memory + BYTES - 4, sizeof before);
    CHECK_EQ(before, value + 1);
}

int main(int argc, char **argv)
{
    const int order[REGIONS] = {3, 0, 5, 1, 4, 2};
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    win = dynamic_window();
    for (int i = 0; i < REGIONS; i++)
        OK(MPI_Win_attach(win, memory + order[i] * BYTES, BYTES));
    exchange(memory, places);
    const MPI_Aint there = places[next_rank()];
    OK(MPI_Win_lock_all(0, win));
    one_range(there, 0, ALL);
    one_range(there, BYTES - 1, 2);
    one_range(there, 100, 2 * BYTES);
    one_range(there, 2 * BYTES, BYTES);
    one_range(there, BYTES + 5, 4 * BYTES);
    word_on_a_border(there);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < REGIONS; i++)
        OK(MPI_Win_detach(win, memory + i * BYTES));
    OK(MPI_Win_free(&win));
    return check_end();
}
