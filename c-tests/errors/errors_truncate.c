// Data that do not fit into the other side are refused, and nothing moves: MPI_ERR_TRUNCATE. The
// target buffer has to be large enough for a put, the origin's for a get, and the result buffer for
// what is fetched. MPI-4.1 sections 12.3.1, 12.3.2, 12.3.4 and 9.4.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win;
    long values[4] = {1, 2, 3, 4}, got[4] = {-1, -1, -1, -1};
    check_start(&argc, &argv);
    long *base = returning_window_of(64, sizeof(long), &win);
    const int to = next_rank();
    OK(MPI_Win_lock_all(0, win));
    EXPECT(MPI_Put(values, 4, MPI_LONG, to, 0, 3, MPI_LONG, win), MPI_ERR_TRUNCATE);
    EXPECT(MPI_Put(values, 2, MPI_LONG, to, 0, 15, MPI_BYTE, win), MPI_ERR_TRUNCATE);
    EXPECT(MPI_Get(got, 3, MPI_LONG, to, 0, 4, MPI_LONG, win), MPI_ERR_TRUNCATE);
    EXPECT(MPI_Accumulate(values, 4, MPI_LONG, to, 0, 3, MPI_LONG, MPI_SUM, win),
           MPI_ERR_TRUNCATE);
    EXPECT(MPI_Get_accumulate(values, 2, MPI_LONG, got, 1, MPI_LONG, to, 0, 2, MPI_LONG, MPI_SUM,
                              win), MPI_ERR_TRUNCATE);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 8; i++)
        CHECK_EQ(base[i], 0);
    CHECK(got[0] == -1 && got[3] == -1);
    OK(MPI_Win_free(&win));
    return check_end();
}
