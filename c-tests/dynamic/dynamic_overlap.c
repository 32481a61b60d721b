// Memory that overlaps an attached region cannot be attached: MPI_ERR_RMA_ATTACH, and the region
// that was there still works; once it is detached the memory is free again.
// MPI-4.1 sections 12.2.4 and 12.6.2.
// ranks: 1 2 4

#include "dynamic.h"

enum { BYTES = 256, FIRST = 1024, ALL = 4096 };

static MPI_Win win;
static unsigned char memory[ALL];

static void refused(int first, int bytes)
{
    EXPECT(MPI_Win_attach(win, memory + first, bytes), MPI_ERR_RMA_ATTACH);
}

// The bytes of the region [FIRST, FIRST + BYTES) can be put and read.
static void still_works(MPI_Aint there, unsigned char value)
{
    unsigned char values[BYTES], got[BYTES];
    const int target = next_rank();
    const MPI_Aint place = MPI_Aint_add(there, FIRST);
    memset(values, value, sizeof values);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Put(values, BYTES, MPI_BYTE, target, place, BYTES, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(got, BYTES, MPI_BYTE, target, place, BYTES, MPI_BYTE, win));
    OK(MPI_Win_unlock(target, win));
    CHECK(memcmp(got, values, BYTES) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    win = dynamic_window();
    exchange(memory, places);
    const MPI_Aint there = places[next_rank()];
    OK(MPI_Win_attach(win, memory + FIRST, BYTES));
    // Exactly it, inside, at either end, over one end or over both, by one byte.
    refused(FIRST, BYTES);
    refused(FIRST + 8, BYTES - 16);
    refused(FIRST, 1);
    refused(FIRST + BYTES - 1, 1);
    refused(FIRST - 100, 101);
    refused(FIRST + BYTES - 1, 100);
    refused(FIRST - 1, BYTES + 2);
    refused(0, ALL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    still_works(there, 1);
    // What abuts does not overlap.
    OK(MPI_Win_attach(win, memory + FIRST - 100, 100));
    OK(MPI_Win_attach(win, memory + FIRST + BYTES, 100));
    refused(FIRST - 101, 2);
    refused(FIRST + BYTES + 99, 2);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    still_works(there, 2);
    OK(MPI_Win_detach(win, memory + FIRST - 100));
    OK(MPI_Win_detach(win, memory + FIRST + BYTES));
    OK(MPI_Win_detach(win, memory + FIRST));
    OK(MPI_Win_attach(win, memory, ALL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    still_works(there, 3);
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
    return check_end();
}
