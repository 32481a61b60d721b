/* rma_bench: what one-sided calls cost, by the method of the paper's section 3. Its options and
 * measurements: `rma_bench --help`, `rma_bench --list`. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Measurement *const tables[] = {transfers, derived,  overlaps, computings, atomics,
                                     epochs,    locks,    creation, memories,   messages,
                                     by_hand,   by_threads, one_ways, notified,
                                     attributes, NULL};

_Noreturn void leave(int status) {
    MPI_Finalize();
    exit(status);
}

int main(int argc, char **argv) {
    int provided, is_threaded = 0;
    for (int k = 1; k < argc; k++) is_threaded |= strncmp(argv[k], "threads_", 8) == 0;
    MPI_Init_thread(&argc, &argv, is_threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    if (is_threaded && provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "rma_bench: threads_...: needs MPI_THREAD_MULTIPLE\n");
        leave(2);
    }
    leave(run_commands(argc, argv));
}
