// A target type some of whose entries overlap adds each entry to what the one before it has left, as
// MPIs do. Erroneous: MPI-4.1 section 12.3.4 forbids such a type.
// ranks: 2 4

#include "check.h"

enum { ENTRIES = 24, ROUNDS = 100 };

int main(int argc, char **argv)
{
    double *base, ones[ENTRIES];
    int lengths[ENTRIES];
    MPI_Aint places[ENTRIES];
    MPI_Datatype type;
    MPI_Win win;
    check_start(&argc, &argv);
    OK(MPI_Win_allocate(2 * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    base[0] = base[1] = 0;
    for (int i = 0; i < ENTRIES; i++) {
        ones[i] = 1;
        lengths[i] = 1;
        places[i] = (i + 1) / 2 % 2 * (MPI_Aint)sizeof *base; // 0, 1, 1, 0, 0, 1, ...
    }
    OK(MPI_Type_create_hindexed(ENTRIES, lengths, places, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++)
        OK(MPI_Accumulate(ones, ENTRIES, MPI_DOUBLE, size - 1, 0, 1, type, MPI_SUM, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == size - 1) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
        CHECK_EQ((int)base[0], size * ROUNDS * ENTRIES / 2);
        CHECK_EQ((int)base[1], size * ROUNDS * ENTRIES / 2);
        OK(MPI_Win_unlock(rank, win));
    }
    OK(MPI_Type_free(&type));
    OK(MPI_Win_free(&win));
    return check_end();
}
