// Requests of strided transfers: the data has its shape when the wait returns, and the type may be
// freed before. MPI-4.1 sections 12.3.5 and 5.1.9.
// ranks: 1 2 4

#include "check.h"

enum { STRIDED = 64 };

static void strided(MPI_Win win)
{
    MPI_Request request[2];
    MPI_Datatype type;
    int values[2 * STRIDED], got[2 * STRIDED];
    OK(MPI_Type_vector(STRIDED, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < 2 * STRIDED; i++) {
        values[i] = 5000 + i;
        got[i] = -1;
    }
    OK(MPI_Rput(values, 1, type, next_rank(), 0, 1, type, win, &request[0]));
    OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Rget(got, 1, type, next_rank(), 0, 1, type, win, &request[1]));
    OK(MPI_Type_free(&type));
    OK(MPI_Wait(&request[1], MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * STRIDED - 1; i++)
        CHECK_EQ(got[i], i % 2 ? -1 : 5000 + i);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    window_of(2 * STRIDED * sizeof(int), sizeof(int), &win);
    OK(MPI_Win_lock_all(0, win));
    strided(win);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
