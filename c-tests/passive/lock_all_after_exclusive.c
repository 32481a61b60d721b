// Long series of exclusive locks, which may become cheaper, with lock_all in between now and then:
// no increment is lost, and no rank under lock_all sees half of what a writer does. A writer holds
// one target or two. MPI-4.1 section 12.5.3.
// ranks: 2 3 4 8
// plain ranks: 2

#include "check.h"

enum { ROUNDS = 1500 };

static MPI_Win win;

static void lock(int target) { OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win)); }

// Adds one to the two numbers of a target whose lock this rank holds.
static void increment(int target)
{
    long numbers[2] = {-1, -1};
    OK(MPI_Get(numbers, 2, MPI_LONG, target, 0, 2, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    CHECK_EQ(numbers[0], numbers[1]);
    for (int i = 0; i < 2; i++) {
        numbers[i]++;
        OK(MPI_Put(&numbers[i], 1, MPI_LONG, target, i, 1, MPI_LONG, win));
        OK(MPI_Win_flush(target, win));
    }
}

static void read_all(void)
{
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; target < size; target++) {
        long numbers[2] = {-1, -2};
        OK(MPI_Get(&numbers[1], 1, MPI_LONG, target, 1, 1, MPI_LONG, win));
        OK(MPI_Win_flush(target, win));
        OK(MPI_Get(&numbers[0], 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
        OK(MPI_Win_flush(target, win));
        CHECK_EQ(numbers[0], numbers[1]);
    }
    OK(MPI_Win_unlock_all(win));
}

int main(int argc, char **argv)
{
    long expected = 0, increments = 0, own[2];
    check_start(&argc, &argv);
    window_of(2 * sizeof(long), sizeof(long), &win);
    for (int round = 0; round < ROUNDS; round++) {
        int first = (round + rank) % size, second = first + 1;
        if ((round + 97 * rank) % 250 == 0) {
            read_all();
            continue;
        }
        lock(first);
        increment(first);
        increments++;
        if (round % 5 == 0 && second < size) {
            lock(second);
            increment(second);
            increments++;
            if (round % 2)
                OK(MPI_Win_unlock(second, win));
        }
        OK(MPI_Win_unlock(first, win));
        if (round % 5 == 0 && second < size && round % 2 == 0)
            OK(MPI_Win_unlock(second, win));
    }
    OK(MPI_Allreduce(&increments, &expected, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    lock(rank);
    OK(MPI_Get(own, 2, MPI_LONG, rank, 0, 2, MPI_LONG, win));
    OK(MPI_Win_unlock(rank, win));
    CHECK_EQ(own[0], own[1]);
    OK(MPI_Reduce(&own[0], &increments, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD));
    if (rank == 0)
        CHECK_EQ(increments, expected);
    OK(MPI_Win_free(&win));
    return check_end();
}
