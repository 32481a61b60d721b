// A window may be freed while memory is attached to it, which detaches it: the memory can be given
// back, or attached to the next window. MPI-4.1 sections 12.2.4 and 12.2.5.
// ranks: 1 2 4

#include "dynamic.h"

#include <sys/mman.h>

enum { ROUNDS = 12, REGIONS = 10, INTS = 1024 };

static int kept[INTS];

static int *pages_of(void)
{
    int *pages = mmap(NULL, INTS * sizeof(int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    CHECK((void *)pages != MAP_FAILED);
    return pages;
}

// Leaves a value of this rank in the last int of the next one's memory.
static void reach(MPI_Win win, const int *memory, int value)
{
    MPI_Aint places[RANKS_MAX];
    exchange(memory + INTS - 1, places);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), places[next_rank()], 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(memory[INTS - 1], value - rank + previous_rank());
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        int *regions[REGIONS];
        MPI_Win win = dynamic_window();
        OK(MPI_Win_attach(win, kept, sizeof kept));
        for (int i = 0; i < REGIONS; i++) {
            regions[i] = pages_of();
            OK(MPI_Win_attach(win, regions[i], INTS * sizeof(int)));
        }
        reach(win, kept, 1000 * round + rank);
        reach(win, regions[round % REGIONS], 2000 * round + rank);
        OK(MPI_Win_free(&win));
        for (int i = 0; i < REGIONS; i++)
            CHECK_EQ(munmap(regions[i], INTS * sizeof(int)), 0);
        CHECK_EQ(kept[INTS - 1], 1000 * round + previous_rank());
    }
    return check_end();
}
