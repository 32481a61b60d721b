// Memory at one address is detached, replaced by other memory and attached again, many times: what
// an origin remembers of the region that was there does not lead it to the old memory.
// MPI-4.1 section 12.2.4.
// ranks: 1 2 4

#include "dynamic.h"

#include <sys/mman.h>

enum { ROUNDS = 40, BYTES = 8192, INTS = BYTES / sizeof(int) };

static MPI_Win win;
static FILE *file;

// Writes to all of the next rank's memory, and reads it back.
static void reach(MPI_Aint there, int round)
{
    static int values[INTS], got[INTS];
    const int target = next_rank();
    for (int i = 0; i < INTS; i++)
        values[i] = 100000 * round + 10000 * rank + i;
    OK(MPI_Get(got, INTS, MPI_INT, target, there, INTS, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < INTS; i++)
        CHECK_EQ(got[i], -round);
    OK(MPI_Put(values, INTS, MPI_INT, target, there, INTS, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(got, INTS, MPI_INT, target, there, INTS, MPI_INT, win));
    OK(MPI_Win_flush(target, win));
    CHECK(memcmp(got, values, sizeof got) == 0);
}

static void attach_reach_detach(int *memory, int round)
{
    MPI_Aint places[RANKS_MAX];
    for (int i = 0; i < INTS; i++)
        memory[i] = -round;
    OK(MPI_Win_attach(win, memory, BYTES));
    exchange(memory, places);
    reach(places[next_rank()], round);
    settle(win);
    for (int i = 0; i < INTS; i++)
        CHECK_EQ(memory[i], 100000 * round + 10000 * previous_rank() + i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
}

// Private pages, shared ones and those of a file take turns at one address.
static void other_pages(int *place, int round)
{
    const int kind = round % 3;
    const int flags = (kind == 0 ? MAP_PRIVATE : MAP_SHARED) | (kind == 2 ? 0 : MAP_ANONYMOUS);
    void *memory = mmap(place, BYTES, PROT_READ | PROT_WRITE, flags | MAP_FIXED,
                        kind == 2 ? fileno(file) : -1, 0);
    CHECK(memory == (void *)place);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    win = dynamic_window();
    file = tmpfile();
    CHECK(file != NULL);
    CHECK_EQ(ftruncate(fileno(file), BYTES), 0);
    int *place = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK((void *)place != MAP_FAILED);
    OK(MPI_Win_lock_all(0, win));
    for (int round = 1; round <= ROUNDS; round++) {
        int *memory;
        other_pages(place, round);
        attach_reach_detach(place, 2 * round);
        // What was just given back is likely to be given out again.
        OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory));
        attach_reach_detach(memory, 2 * round + 1);
        OK(MPI_Free_mem(memory));
    }
    OK(MPI_Win_unlock_all(win));
    CHECK_EQ(munmap(place, BYTES), 0);
    OK(MPI_Win_free(&win));
    return check_end();
}
