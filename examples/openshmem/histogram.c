/* A histogram that is spread over all processes, in OpenSHMEM: each process counts its numbers in the bins of
 * others by atomic additions, and passes a running total around a ring by put with signal. */
#include "shmem.h"
#include "../example.h"

static Option options[] = {{"numbers", "20000", "numbers of each process"},
                           {"bins", "64", "bins of each process"},
                           {NULL, NULL, NULL}};

/* Symmetric variables of the program: the signal, and what it announces. */
static uint64_t arrived;
static long total;

static uint32_t next(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* The numbers of a process, the same wherever they are computed. */
static uint32_t seed(int pe) { return 2463534242u + 977u * (uint32_t)pe; }

static long *count_alone(long numbers, long bins, int pes) {
    long *all = calloc((size_t)(bins * pes), sizeof *all);
    for (int pe = 0; pe < pes; pe++) {
        uint32_t state = seed(pe);
        for (long i = 0; i < numbers; i++) all[next(&state) % (uint32_t)(bins * pes)]++;
    }
    return all;
}

int main(int argc, char **argv) {
    example_begin(&argc, &argv, "A histogram over all processes, with a subset of OpenSHMEM.", options);
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    const long numbers = option_number(options, "numbers", 1), bins = option_number(options, "bins", 1);
    long *mine = shmem_calloc((size_t)bins, sizeof *mine), own = 0;
    uint32_t state = seed(me);
    double begin = MPI_Wtime();
    for (long i = 0; i < numbers; i++) {
        uint32_t bin = next(&state) % (uint32_t)(bins * pes);
        shmem_long_atomic_inc(&mine[bin / (uint32_t)pes], (int)(bin % (uint32_t)pes));
    }
    shmem_barrier_all();
    for (long bin = 0; bin < bins; bin++) own += mine[bin];
    /* Process 0 begins, and gets the total from the last one. */
    if (me > 0) shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 1);
    long passed = own + (me > 0 ? total : 0);
    shmem_long_put_signal(&total, &passed, 1, &arrived, 1, SHMEM_SIGNAL_SET, (me + 1) % pes);
    if (me == 0) shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 1);
    double seconds = MPI_Wtime() - begin;
    long *all = count_alone(numbers, bins, pes);
    int is_right = me > 0 || total == numbers * pes;
    for (long bin = 0; bin < bins; bin++) is_right &= mine[bin] == all[bin * pes + me];
    for (int pe = 0; pe < pes; pe++) is_right &= shmem_long_g(&mine[bins - 1], pe) == all[(bins - 1) * pes + pe];
    free(all);
    is_right = example_result("openshmem", "histogram", seconds, is_right, "numbers=%ld", numbers);
    shmem_free(mine);
    shmem_finalize();
    MPI_Finalize();
    return is_right ? 0 : 1;
}
