// 500 windows alive at once keep their memory apart, and two ranks make and free 3,000 one after
// the other (more ranks 300). MPI-4.1 sections 12.2.2 and 12.2.5.
// ranks: 2 4
// plain ranks: 2

#include "check.h"

enum { ALIVE = 500, IN_A_ROW = 3000 };

static void many_alive(void)
{
    static MPI_Win wins[ALIVE];
    static int *bases[ALIVE];
    for (int i = 0; i < ALIVE; i++)
        OK(MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &bases[i], &wins[i]));
    for (int i = 0; i < ALIVE; i++)
        OK(MPI_Win_fence(0, wins[i]));
    for (int i = 0; i < ALIVE; i++) {
        int value = 1000 * rank + i;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, wins[i]));
        OK(MPI_Put(&value, 1, MPI_INT, next_rank(), i % 16, 1, MPI_INT, wins[i]));
        OK(MPI_Win_unlock(next_rank(), wins[i]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < ALIVE; i++) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, wins[i]));
        CHECK_EQ(bases[i][i % 16], 1000 * previous_rank() + i);
        OK(MPI_Win_unlock(rank, wins[i]));
    }
    // Free them out of order: the odd ones upwards, then the even ones downwards.
    for (int i = 1; i < ALIVE; i += 2)
        OK(MPI_Win_free(&wins[i]));
    for (int i = ALIVE - 2; i >= 0; i -= 2)
        OK(MPI_Win_free(&wins[i]));
}

static void many_in_a_row(void)
{
    for (int i = 0; i < IN_A_ROW / (size > 2 ? 10 : 1); i++) {
        MPI_Win win;
        int *base;
        OK(MPI_Win_allocate(16 + i % 5000, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        base[0] = i;
        OK(MPI_Win_free(&win));
    }
}

int main(int argc, char **argv)
{
    check_start_within(110, &argc, &argv);
    many_alive();
    many_in_a_row();
    return check_end();
}
