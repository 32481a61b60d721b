/* Ranks under callgrind that sleep until the other one wakes them: valgrind runs one thread at a time,
 * and a barrier of the MPI polls. A rank is woken by kill(2) with SIGUSR1. */
#include <signal.h>
#include <stddef.h>

/* To be called before MPI_Init, so that all threads of the process block the signal. */
static void block_wakes(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static void wait_for_other(void) {
    sigset_t set;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigwait(&set, &got);
}
