// A timer of a thread that ticks all the time, as that of a sampling profiler, does not keep a call
// from returning, and fails none: neither MPI_Alloc_mem nor the making of windows, whose memory is
// then all used, nor first contact, nor what waits. At 1 ms, and for windows of all flavours and
// their calls at 100 us; then with two threads.
//
// usage: signals restart|interrupt   whether the handler restarts the system calls that its signal
//                                    has interrupted (SA_RESTART)

#define _GNU_SOURCE
#include "robust.h"

#include <pthread.h>
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

static const long ms = 1000000;

// That of this thread.
static _Thread_local timer_t timer;

static void tick_every(long ns)
{
    struct itimerspec often = {{0, ns}, {0, ns}};
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
}

static void start_ticking(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    tick_every(1 * ms);
}

static void stop_ticking(void)
{
    CHECK(timer_delete(timer) == 0);
}

// Does nothing for so many milliseconds, whatever interrupts it.
static void late(long milliseconds)
{
    struct timespec left = {0, milliseconds * ms};
    while (nanosleep(&left, &left) != 0)
        ;
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
    if (getenv("FOMPI_RANKS_PER_NODE") == NULL) {
        OK(MPI_Win_allocate_shared(large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        use(win, large - (1 << 20));
        OK(MPI_Win_free(&win));
    }
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

// Each rank is delayed in turn, so long that the others sleep, and check whether it is still there.
static void waits(void)
{
    MPI_Win win;
    MPI_Group all, others;
    for (int slow = 0; slow < size; slow++) {
        const int64_t *value = window_of(2, &win), one = 1;
        OK(MPI_Win_get_group(win, &all));
        OK(MPI_Group_excl(all, 1, &slow, &others));
        if (rank == slow)
            late(500);
        OK(MPI_Win_fence(0, win));
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        if (rank == slow) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, slow, 0, win));
            OK(MPI_Barrier(MPI_COMM_WORLD));
            late(500);
            OK(MPI_Win_unlock(slow, win));
            late(300);
            OK(MPI_Win_post(others, 0, win));
            OK(MPI_Win_wait(win));
            late(300);
            CHECK(*value == 2 * (size - 1));
        } else {
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, slow, 0, win));
            OK(MPI_Accumulate(&one, 1, MPI_INT64_T, slow, 0, 1, MPI_INT64_T, MPI_SUM, win));
            OK(MPI_Win_unlock(slow, win));
            OK(MPI_Group_incl(all, 1, &slow, &others));
            OK(MPI_Win_start(others, 0, win));
            OK(MPI_Accumulate(&one, 1, MPI_INT64_T, slow, 0, 1, MPI_INT64_T, MPI_SUM, win));
            late(300);
            OK(MPI_Win_complete(win));
        }
        OK(MPI_Group_free(&others));
        OK(MPI_Group_free(&all));
        OK(MPI_Win_free(&win));
    }
}

enum { THREADS = 2, ROUNDS = 2000 };

static MPI_Win windows[THREADS];

// One thread of each rank on a window, and now and then one that delays a lock.
static void *work(void *number)
{
    const MPI_Win win = windows[*(int *)number];
    const int64_t one = 1;
    start_ticking();
    for (int round = 0; round < ROUNDS; round++) {
        const int target = round % size;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win));
        if (round % 100 == 99)
            late(5);
        OK(MPI_Win_unlock(target, win));
    }
    stop_ticking();
    return NULL;
}

static void threads(void)
{
    int numbers[THREADS];
    int64_t *values[THREADS], sums[2] = {0};
    pthread_t others[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        values[i] = window_of(2, &windows[i]);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&others[i], NULL, work, &numbers[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(others[i], NULL) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < THREADS; i++)
        sums[0] += *values[i];
    OK(MPI_Allreduce(&sums[0], &sums[1], 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sums[1] == (int64_t)THREADS * ROUNDS * size);
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Win_free(&windows[i]));
}

int main(int argc, char **argv)
{
    const int restart = argc > 1 && strcmp(argv[1], "restart") == 0;
    struct sigaction action = {.sa_handler = tick, .sa_flags = restart ? SA_RESTART : 0};
    MPI_Win win;
    char *base;
    int level;
    alarm(90);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
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
    tick_every(ms / 10);
    flavors();
    waits();
    if (level == MPI_THREAD_MULTIPLE)
        threads();
    while (ticks == 0)
        usleep(1000);
    stop_ticking();
    return MPI_Finalize();
}
