// Operations that the standard does not pair with a type, and that every MPI computes: so does the
// library, unless FOMPI_STRICT is set. MPI-4.1 section 6.9.2, docs/decisions/0016.
// ranks: 1 2

#include "check.h"

static MPI_Win win;
static unsigned char *base;

// `old` op `given` is `want`, in each of three elements at the next rank.
static void computes(MPI_Datatype type, MPI_Op op, unsigned char old, unsigned char given,
                     unsigned char want)
{
    unsigned char from[24] = {0}, got[24] = {0};
    int bytes;
    OK(MPI_Type_size(type, &bytes));
    for (int fetches = 0; fetches < 2; fetches++) {
        memset(base, 0, 32);
        for (int i = 0; i < 3; i++) base[i * bytes] = old, from[i * bytes] = given;
        OK(MPI_Win_fence(0, win));
        if (fetches)
            OK(MPI_Get_accumulate(from, 3, type, got, 3, type, next_rank(), 0, 3, type, op, win));
        else
            OK(MPI_Accumulate(from, 3, type, next_rank(), 0, 3, type, op, win));
        OK(MPI_Win_fence(0, win));
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(base[i * bytes], want);
            CHECK(!fetches || got[i * bytes] == old);
        }
        OK(MPI_Win_fence(0, win));
    }
}

int main(int argc, char **argv)
{
    const MPI_Datatype small[] = {MPI_BYTE, MPI_CHARACTER};
    const MPI_Datatype wide[] = {MPI_AINT, MPI_COUNT, MPI_OFFSET};
    check_start(&argc, &argv);
    base = window_of(64, 1, &win);
    for (int i = 0; i < 2; i++) {
        computes(small[i], MPI_SUM, 200, 100, 44);
        computes(small[i], MPI_PROD, 20, 30, 88);
        computes(small[i], MPI_LAND, 2, 4, 1);
        computes(small[i], MPI_LOR, 0, 4, 1);
        computes(small[i], MPI_LXOR, 2, 4, 0);
        computes(small[i], MPI_BAND, 6, 12, 4);
        computes(small[i], MPI_BOR, 6, 12, 14);
        computes(small[i], MPI_BXOR, 6, 12, 10);
    }
    for (int i = 0; i < 3; i++) {
        computes(wide[i], MPI_LAND, 2, 4, 1);
        computes(wide[i], MPI_LOR, 0, 4, 1);
        computes(wide[i], MPI_LXOR, 2, 4, 0);
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
