// The same as created_accumulate_stress with elements that are at no multiple of their width, some
// of them across two cache lines or two pages. MPI-4.1 section 12.7.1.
// ranks: 1 2 3 4
// settings: FOMPI_ADOPT=never
// plain ranks: 2 4

#include "stress.h"

int main(int argc, char **argv)
{
    static const int shifts[4] = {1, 4, 7, 8};
    stress_start(&argc, &argv);
    char *heap = heap_memory(STRESS_BYTES + 64), *from_mpi = mpi_memory(STRESS_BYTES + 64);
    for (int kind = 1; kind < KINDS; kind++)
        for (int i = 0; i < 4; i++) {
            // At a multiple of its width nothing is new; another alignment on each rank.
            const int shift = shifts[(i + rank) % 4];
            stress(&kinds[kind], (i % 2 == 0 ? heap : from_mpi) + shift,
                   i < 3 ? LOCK_ALL : LOCK_EACH);
        }
    OK(MPI_Free_mem(from_mpi));
    return check_end();
}
