/* OpenSHMEM's shmem_putmem_signal and shmem_signal_wait_until on notified puts: data, and behind them a
 * signal, which the target waits for without a loop. A signal is a counter of a window, so it can only be
 * added to (SHMEM_SIGNAL_ADD of 1), and a comparison can only be "at least" (SHMEM_CMP_GE).
 *
 * Each process sends its number around the ring, so that all get the sum. */
#include "../notify.h"
#include <stdint.h>

static Option options[] = {{"rounds", "100", "times around the ring"}, {NULL, NULL, NULL}};

/* The symmetric heap: a window that is open for all, with some signals of each process. */
static MPI_Win heap;

static void *shmem_malloc(size_t bytes, int signals) {
    void *memory;
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &heap);
    FOMPI_Win_set_num_notify(heap, MPI_INFO_NULL, signals);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, heap);
    MPI_Barrier(MPI_COMM_WORLD);
    return memory;
}

/* Puts bytes to a process, and adds 1 to a signal of it when they are there. The source may be changed. */
static void shmem_putmem_signal(size_t to, const void *from, int bytes, int signal, int pe) {
    FOMPI_Put_notify(from, bytes, MPI_BYTE, pe, (MPI_Aint)to, bytes, MPI_BYTE, signal, heap);
    MPI_Win_flush_local(pe, heap);
}

/* Returns when a signal of this process is at least `value`: what was put before it may be read. */
static void shmem_signal_wait_until(int signal, uint64_t value) {
    FOMPI_Win_wait_notify(heap, signal, (MPI_Count)value);
}

int main(int argc, char **argv) {
    enum { ARRIVED, SIGNALS };
    example_begin(&argc, &argv, "A ring with put-with-signal, as OpenSHMEM has it.", options);
    int pe, pes, rounds = (int)option_number(options, "rounds", 1), is_right = 1;
    if (!has_notify()) {
        fprintf(stderr, "shmem_signal: start it with fompirun: it needs libfompi\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &pe);
    MPI_Comm_size(MPI_COMM_WORLD, &pes);
    /* As many boxes as processes: by then a number has gone round, so its box has been read. */
    long *box = shmem_malloc((size_t)pes * sizeof *box, SIGNALS), steps = 0;
    double begin = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        long passed = pe + round, sum = passed;
        for (int step = 1; step < pes; step++) {
            int at = (int)(steps++ % pes);
            shmem_putmem_signal((size_t)at * sizeof *box, &passed, sizeof passed, ARRIVED,
                                (pe + 1) % pes);
            shmem_signal_wait_until(ARRIVED, (uint64_t)steps);
            passed = box[at];
            sum += passed;
        }
        is_right &= sum == (long)pes * (pes - 1) / 2 + (long)pes * round;
    }
    double seconds = MPI_Wtime() - begin;
    is_right = example_result("shmem_signal", "ring", seconds, is_right, "rounds=%d", rounds);
    MPI_Win_unlock_all(heap);
    MPI_Win_free(&heap);
    return example_end(is_right);
}
