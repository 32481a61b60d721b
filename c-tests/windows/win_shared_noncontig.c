// With alloc_shared_noncontig the parts of a shared window may lie anywhere, and still every rank
// reaches all of them. MPI-4.1 section 12.2.3.
// ranks: 1 2 4 8

#include "check.h"

enum { BYTES = 5000 };

int main(int argc, char **argv)
{
    MPI_Info info;
    MPI_Win win;
    unsigned char *base;
    check_start(&argc, &argv);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    OK(MPI_Win_allocate_shared(BYTES + rank, 1, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Info_free(&info));

    memset(base, rank + 1, (size_t)(BYTES + rank));
    OK(MPI_Win_fence(0, win));
    for (int r = 0; r < size; r++) {
        MPI_Aint bytes;
        int disp_unit;
        unsigned char *part;
        OK(MPI_Win_shared_query(win, r, &bytes, &disp_unit, &part));
        CHECK_EQ(bytes, BYTES + r);
        CHECK_EQ(disp_unit, 1);
        for (int i = 0; i < BYTES + r; i++)
            CHECK_EQ(part[i], r + 1);
    }
    OK(MPI_Win_fence(0, win));

    // A store of one rank is seen by a get of another.
    MPI_Aint bytes;
    int disp_unit;
    unsigned char *part, got = 0;
    OK(MPI_Win_shared_query(win, next_rank(), &bytes, &disp_unit, &part));
    part[BYTES - 1] = (unsigned char)(100 + rank);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(&got, 1, MPI_UNSIGNED_CHAR, rank, BYTES - 1, 1, MPI_UNSIGNED_CHAR, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(got, 100 + previous_rank());
    OK(MPI_Win_free(&win));
    return check_end();
}
