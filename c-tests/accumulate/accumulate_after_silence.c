// A rank changes single elements, and then makes no call while another rank adds to many elements of
// the same target for long; then both call at the same time, and later all ranks. No change is lost.
// MPI-4.1 section 12.7.1.
// ranks: 2 4

#include "check.h"

enum { ELEMENTS = 1024, CALLS = 1000, SINGLE = 1000, ROUNDS = 2, TARGET = 1 };

static MPI_Win win;

static void add_to_one(void)
{
    const double one = 1;
    double before;
    for (int i = 0; i < SINGLE; i++) {
        OK(MPI_Fetch_and_op(&one, &before, MPI_DOUBLE, TARGET, ELEMENTS / 2, MPI_SUM, win));
        OK(MPI_Win_flush(TARGET, win));
    }
}

static void add_to_all(void)
{
    double ones[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        ones[i] = 1;
    for (int i = 0; i < CALLS; i++) {
        OK(MPI_Accumulate(ones, ELEMENTS, MPI_DOUBLE, TARGET, 0, ELEMENTS, MPI_DOUBLE, MPI_SUM,
                          win));
        OK(MPI_Win_flush(TARGET, win));
    }
}

int main(int argc, char **argv)
{
    double *base;
    int singles;
    check_start(&argc, &argv);
    base = window_of(ELEMENTS * sizeof *base, sizeof *base, &win);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == TARGET)
            add_to_one();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0)
            add_to_all();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0)
            add_to_all();
        else if (rank == TARGET || round > 0)
            add_to_one();
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    singles = SINGLE * (ROUNDS + 1 + (ROUNDS - 1) * (size - 1));
    for (int i = 0; rank == TARGET && i < ELEMENTS; i++)
        CHECK_EQ((int)base[i], 2 * ROUNDS * CALLS + (i == ELEMENTS / 2 ? singles : 0));
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
