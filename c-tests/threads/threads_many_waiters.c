// Ten threads of rank 1 wait for locks of one window that rank 0 keeps, each at another target. The
// other threads of rank 1 go on meanwhile: they lock targets that are free, and accumulate, as do
// other ranks, and only then rank 0 releases its locks. MPI-4.1 sections 11.6 and 12.5.3.
// ranks: 12

#include "threads.h"

#include <sched.h>

// Targets 2..11 are those that rank 0 keeps; target 0 is free.
enum { WAITERS = 10, FIRST = 2, ROUNDS = 100, COUNT = 40 };

static MPI_Win win, plain;
static int64_t *base;
static long double wide[COUNT];
static int about_to_wait;

static void *wait_for_a_lock(void *argument)
{
    const int target = *(int *)argument;
    const int64_t one = 1;
    __atomic_fetch_add(&about_to_wait, 1, __ATOMIC_RELEASE);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_unlock(target, win));
    return NULL;
}

// Locks of the free target, and accumulates of elements that no single instruction can change.
static void go_on(void)
{
    const int64_t one = 1;
    long double ones[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    for (int round = 0; round < ROUNDS; round++) {
        OK(MPI_Win_lock(round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Win_unlock(0, win));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, plain));
        OK(MPI_Accumulate(ones, COUNT, MPI_LONG_DOUBLE, 0, 0, COUNT, MPI_LONG_DOUBLE, MPI_SUM,
                          plain));
        OK(MPI_Win_unlock(0, plain));
    }
}

// Rank 0 keeps what the threads of rank 1 want until rank 1 says that it went on.
static void keep(void)
{
    for (int target = FIRST; target < FIRST + WAITERS; target++)
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int target = FIRST; target < FIRST + WAITERS; target++)
        OK(MPI_Win_unlock(target, win));
}

static void wait_and_go_on(void)
{
    pthread_t threads[WAITERS];
    int targets[WAITERS];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int t = 0; t < WAITERS; t++) {
        targets[t] = FIRST + t;
        CHECK_EQ(pthread_create(&threads[t], NULL, wait_for_a_lock, &targets[t]), 0);
    }
    while (__atomic_load_n(&about_to_wait, __ATOMIC_ACQUIRE) < WAITERS)
        sched_yield();
    go_on();
    OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 5, MPI_COMM_WORLD));
    for (int t = 0; t < WAITERS; t++)
        CHECK_EQ(pthread_join(threads[t], NULL), 0);
}

int main(int argc, char **argv)
{
    if (!check_start_threads(&argc, &argv))
        return check_end();
    CHECK_EQ(size, FIRST + WAITERS);
    base = window_of(64, 8, &win);
    OK(MPI_Win_create(wide, sizeof wide, sizeof *wide, MPI_INFO_NULL, MPI_COMM_WORLD, &plain));
    if (rank == 0) {
        keep();
    } else if (rank == 1) {
        wait_and_go_on();
    } else {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank < 4)
            go_on();
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK_EQ(base[0], rank == 0 ? 3 * ROUNDS : rank >= FIRST);
    OK(MPI_Win_unlock(rank, win));
    for (int i = 0; rank == 0 && i < COUNT; i++)
        CHECK(wide[i] == 3 * ROUNDS);
    OK(MPI_Win_free(&plain));
    OK(MPI_Win_free(&win));
    return check_end();
}
