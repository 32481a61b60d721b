// MPI_Win_shared_query for MPI_PROC_NULL answers with the lowest rank that exposes memory, or with
// nothing when none does. MPI-4.1 section 12.2.3.
// ranks: 1 2 4
// between nodes: shared windows are left to the host MPI

#include "check.h"

static void the_last_rank_alone_exposes(void)
{
    MPI_Win win;
    MPI_Aint bytes, null_bytes;
    int disp_unit, null_unit;
    void *base, *part, *null_part;
    OK(MPI_Win_allocate_shared(rank == size - 1 ? 4000 : 0, 4 + rank, MPI_INFO_NULL,
                               MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_shared_query(win, size - 1, &bytes, &disp_unit, &part));
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &null_bytes, &null_unit, &null_part));
    CHECK_EQ(bytes, 4000);
    CHECK_EQ(null_bytes, 4000);
    CHECK_EQ(disp_unit, 4 + size - 1);
    CHECK_EQ(null_unit, 4 + size - 1);
    CHECK(part == null_part);
    if (rank == size - 1)
        CHECK(part == base);
    OK(MPI_Win_free(&win));
}

static void nobody_exposes(void)
{
    MPI_Win win;
    MPI_Aint bytes = -1;
    int disp_unit;
    void *base, *part = &win;
    OK(MPI_Win_allocate_shared(0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &disp_unit, &part));
    CHECK_EQ(bytes, 0);
    OK(MPI_Win_shared_query(win, rank, &bytes, &disp_unit, &part));
    CHECK_EQ(bytes, 0);
    CHECK(part == base);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    the_last_rank_alone_exposes();
    nobody_exposes();
    return check_end();
}
