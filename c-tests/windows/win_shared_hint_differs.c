// Ranks that disagree about alloc_shared_noncontig still get parts that do not overlap and that all
// ranks reach: contiguous ones, because one rank may count on that. MPI-4.1 section 12.2.3.
// ranks: 2 4

#include "check.h"

enum { BYTES = 5000 };

// `picky` is the rank that alone gives the hint.
static void one_rank_gives_the_hint(int picky)
{
    MPI_Info info;
    MPI_Win win;
    unsigned char *base;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", rank == picky ? "true" : "false"));
    OK(MPI_Win_allocate_shared(BYTES, 1, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Info_free(&info));
    memset(base, rank + 1, BYTES);
    OK(MPI_Win_fence(0, win));
    for (int r = 0; r < size; r++) {
        MPI_Aint bytes;
        int disp_unit;
        unsigned char *part;
        OK(MPI_Win_shared_query(win, r, &bytes, &disp_unit, &part));
        CHECK_EQ(bytes, BYTES);
        CHECK_EQ(part - base, (r - rank) * BYTES);
        for (int i = 0; i < BYTES; i++)
            CHECK_EQ(part[i], r + 1);
    }
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    one_rank_gives_the_hint(0);
    one_rank_gives_the_hint(size - 1);
    return check_end();
}
