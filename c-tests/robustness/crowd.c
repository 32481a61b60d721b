// More ranks than cores: every way to wait for each other goes on, and rank 0 prints what one
// operation took. usage: crowd ROUNDS

#include "robust.h"

static MPI_Win win;
static int64_t *base;

static void report(const char *what, double began, int operations)
{
    // Not MPI_Barrier: where that spins, it takes the cores from ranks that are not there yet.
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (rank == 0)
        printf("%3d ranks, %-16s %9.2f us each\n", size, what,
               1e6 * (MPI_Wtime() - began) / operations);
}

// The sum of what all ranks added under the lock is exact.
static void exclusive(int rounds)
{
    double began = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        int64_t value;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(0, win));
        value++;
        OK(MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win));
        OK(MPI_Win_unlock(0, win));
    }
    report("exclusive lock", began, rounds * size);
    CHECK(rank != 0 || base[0] == (int64_t)rounds * size);
}

// Exclusive locks of all targets in turn against lock_all of others: none is starved.
static void mixed(int rounds)
{
    double began = MPI_Wtime();
    int64_t one = 1, before;
    for (int i = 0; i < rounds; i++) {
        int target = (rank + i) % size;
        if ((rank + i) % 3 == 0) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
            OK(MPI_Get(&before, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win));
            OK(MPI_Win_flush(target, win));
            before++;
            OK(MPI_Put(&before, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win));
            OK(MPI_Win_unlock(target, win));
        } else {
            OK(MPI_Win_lock_all(0, win));
            OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 1, MPI_SUM, win));
            OK(MPI_Win_unlock_all(win));
        }
    }
    report("lock_all, lock", began, rounds * size);
    int64_t sum;
    MPI_Allreduce(&base[1], &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (int64_t)rounds * size);
}

static void fences(int rounds)
{
    double began = MPI_Wtime();
    OK(MPI_Win_fence(0, win));
    for (int i = 1; i <= rounds; i++) {
        int64_t value = i;
        OK(MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, 2, 1, MPI_INT64_T, win));
        OK(MPI_Win_fence(0, win));
        CHECK(base[2] == i);
        OK(MPI_Win_fence(0, win));
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    report("fence", began, 2 * rounds);
}

static void ring(int rounds)
{
    MPI_Group all, next, previous;
    int after = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &after, &next);
    MPI_Group_incl(all, 1, &before, &previous);
    double began = MPI_Wtime();
    for (int i = 1; i <= rounds; i++) {
        int64_t value = i;
        OK(MPI_Win_post(previous, 0, win));
        OK(MPI_Win_start(next, 0, win));
        OK(MPI_Put(&value, 1, MPI_INT64_T, after, 3, 1, MPI_INT64_T, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        CHECK(base[3] == i);
    }
    report("post to wait", began, rounds);
    MPI_Group_free(&all);
    MPI_Group_free(&next);
    MPI_Group_free(&previous);
}

// A message that its receiver has to take part in, while the sender waits for a lock that the
// receiver holds: a waiting rank lets the host MPI make progress.
static void message(void)
{
    enum { BYTES = 16 << 20 };
    int partner = rank ^ 1;
    MPI_Request request;
    if (partner < size) {
        char *data = malloc(BYTES);
        memset(data, rank, BYTES);
        if (rank % 2) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, partner, 0, win));
            MPI_Send(NULL, 0, MPI_CHAR, partner, 1, MPI_COMM_WORLD);
            MPI_Recv(data, BYTES, MPI_CHAR, partner, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(data[BYTES - 1] == (char)partner);
            OK(MPI_Win_unlock(partner, win));
        } else {
            MPI_Recv(NULL, 0, MPI_CHAR, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Isend(data, BYTES, MPI_CHAR, partner, 2, MPI_COMM_WORLD, &request);
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
            OK(MPI_Win_unlock(rank, win));
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        free(data);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    start(60, &argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    base = window_of(8, &win);
    exclusive(rounds);
    mixed(rounds);
    fences(rounds);
    ring(rounds);
    if (size <= 8)
        message();
    OK(MPI_Win_free(&win));
    return MPI_Finalize();
}
