// One transfer whose target datatype has its blocks in several regions: what lies between them is
// not part of the target buffer, so it need not be attached. MPI-4.1 sections 12.2.4 and 12.3.1.
// ranks: 1 2 4

#include "dynamic.h"

#include <sys/mman.h>

enum { REGIONS = 12, COUNT = 5, ALL = REGIONS * COUNT };

static MPI_Win win;
static int *regions[REGIONS];
static MPI_Datatype everywhere;

// Memory of other kinds and at other distances from each other: heap, pages, MPI_Alloc_mem.
static int *new_region(int number)
{
    void *memory = NULL;
    if (number % 3 == 0)
        memory = malloc(COUNT * sizeof(int));
    else if (number % 3 == 1)
        memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else
        OK(MPI_Alloc_mem(COUNT * sizeof(int), MPI_INFO_NULL, &memory));
    CHECK(memory != NULL && memory != MAP_FAILED);
    return memory;
}

static void give_back(int number)
{
    OK(MPI_Win_detach(win, regions[number]));
    if (number % 3 == 0)
        free(regions[number]);
    else if (number % 3 == 1)
        CHECK_EQ(munmap(regions[number], 4096), 0);
    else
        OK(MPI_Free_mem(regions[number]));
}

// The datatype of all regions of the next rank, by their addresses.
static void describe(void)
{
    MPI_Aint mine[REGIONS], theirs[REGIONS];
    for (int i = 0; i < REGIONS; i++)
        mine[i] = address_of(regions[i]);
    OK(MPI_Sendrecv(mine, REGIONS, MPI_AINT, previous_rank(), 0, theirs, REGIONS, MPI_AINT,
                    next_rank(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Type_create_hindexed_block(REGIONS, COUNT, theirs, MPI_INT, &everywhere));
    OK(MPI_Type_commit(&everywhere));
}

static void transfers(void)
{
    int values[ALL], got[ALL];
    const int target = next_rank();
    for (int i = 0; i < ALL; i++)
        values[i] = 1000 * rank + i;
    OK(MPI_Put(values, ALL, MPI_INT, target, 0, 1, everywhere, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Accumulate(values, ALL, MPI_INT, target, 0, 1, everywhere, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(got, ALL, MPI_INT, target, 0, 1, everywhere, win));
    OK(MPI_Win_flush(target, win));
    for (int i = 0; i < ALL; i++)
        CHECK_EQ(got[i], 2 * (1000 * rank + i));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    win = dynamic_window();
    for (int i = 0; i < REGIONS; i++) {
        regions[i] = new_region(i);
        OK(MPI_Win_attach(win, regions[i], COUNT * sizeof(int)));
    }
    describe();
    OK(MPI_Win_lock_all(0, win));
    transfers();
    settle(win);
    for (int i = 0; i < ALL; i++)
        CHECK_EQ(regions[i / COUNT][i % COUNT], 2 * (1000 * previous_rank() + i));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = REGIONS - 1; i >= 0; i--)
        give_back(i);
    OK(MPI_Type_free(&everywhere));
    OK(MPI_Win_free(&win));
    return check_end();
}
