// All ranks change the same elements of created windows at once, from 1 to 16 bytes wide, one or
// thousands a call, by all the accumulate calls; no update is lost and none seen half done. The
// target is one of the origins. MPI-4.1 section 12.7.1.
// ranks: 1 2 3 4 8
// settings: FOMPI_ADOPT=never
// plain ranks: 1 2 3 4

#include "stress.h"

int main(int argc, char **argv)
{
    stress_start(&argc, &argv);
    char *heap = heap_memory(STRESS_BYTES), *from_mpi = mpi_memory(STRESS_BYTES);
    for (int kind = 0; kind < KINDS; kind++) {
        stress(&kinds[kind], heap, LOCK_ALL);
        if (kinds[kind].bytes >= 8) {
            stress(&kinds[kind], rank % 2 == 0 ? from_mpi : heap, LOCK_ALL);
            stress(&kinds[kind], heap, LOCK_EACH);
        }
    }
    OK(MPI_Free_mem(from_mpi));
    return check_end();
}
