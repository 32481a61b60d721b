// A timer of a thread that ticks all the time, as that of a sampling profiler, does not keep a call
// from returning: neither MPI_Alloc_mem nor the making of windows, whose memory is then all used. At
// 1 ms, and for windows of all flavours and their calls at 100 us.

#define _GNU_SOURCE
#include "robust.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

static const MPI_Aint bytes = 96 << 20;
static volatile sig_atomic_t ticks;

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

static timer_t timer;

static void tick_every(long ns)
{
    struct itimerspec often = {{0, ns}, {0, ns}};
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
}

static void start_ticking(void)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    tick_every(1000000);
}

// Calls that wait, and calls that copy from one process to the other.
static void use(MPI_Win win, MPI_Aint there)
{
    static char values[1 << 20], got[1 << 20];
    const int target = (rank + 1) % size;
    for (int round = 0; round < 20; round++) {
        memset(values, round + 1, sizeof values);
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(values, sizeof values, MPI_CHAR, target, there, sizeof values, MPI_CHAR, win));
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        OK(MPI_Get(got, sizeof got, MPI_CHAR, target, there, sizeof got, MPI_CHAR, win));
        OK(MPI_Win_unlock(target, win));
        CHECK(memcmp(got, values, sizeof got) == 0);
    }
}

static void flavors(void)
{
    const MPI_Aint large = 64 << 20;
    const int target = (rank + 1) % size, source = (rank + size - 1) % size;
    char *base, *memory = malloc((size_t)large);
    MPI_Aint here, there;
    MPI_Win win;
    CHECK(memory != NULL);
    OK(MPI_Win_allocate(large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    use(win, large - (1 << 20));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_allocate_shared(large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    use(win, large - (1 << 20));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create(memory, large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    use(win, large - (1 << 20));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, memory, large));
    OK(MPI_Get_address(memory, &here));
    OK(MPI_Sendrecv(&here, 1, MPI_AINT, source, 0, &there, 1, MPI_AINT, target, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    use(win, there);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
    free(memory);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    char *base;
    start(60, &argc, &argv);
    start_ticking();
    for (int round = 0; round < 2; round++) {
        OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &base));
        memset(base, 1, (size_t)bytes);
        OK(MPI_Free_mem(base));
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        CHECK(base[0] == 0 && base[bytes - 1] == 0);
        memset(base, 1, (size_t)bytes);
        OK(MPI_Win_free(&win));
    }
    tick_every(100000);
    flavors();
    while (ticks == 0)
        usleep(1000);
    return MPI_Finalize();
}
