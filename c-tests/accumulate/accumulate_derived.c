// Accumulate and Get_accumulate with derived datatypes whose elements are of one predefined type:
// gaps stay untouched, origin and target may differ. MPI-4.1 section 12.3.4.
// ranks: 1 2 4

#include "check.h"

enum { SLOTS = 60 };

static void sums_with_gaps(MPI_Win win, double *base)
{
    MPI_Datatype strided, blocks;
    const int lengths[3] = {3, 1, 6}, places[3] = {40, 0, 10};
    double given[SLOTS], got[SLOTS];
    OK(MPI_Type_vector(10, 1, 3, MPI_DOUBLE, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_Type_indexed(3, lengths, places, MPI_DOUBLE, &blocks));
    OK(MPI_Type_commit(&blocks));
    for (int i = 0; i < SLOTS; i++) {
        given[i] = 1000 + i;
        base[i] = i;
        got[i] = -1;
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(given, 1, strided, next_rank(), 0, 1, blocks, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    // The elements of the target in the order of its type: 40 41 42, 0, 10 to 15.
    for (int i = 0, k = 0; k < 10; k++) {
        i = k < 3 ? 40 + k : k == 3 ? 0 : 6 + k;
        CHECK(base[i] == i + 1000 + 3 * k);
    }
    CHECK(base[1] == 1 && base[9] == 9 && base[16] == 16 && base[39] == 39 && base[43] == 43);

    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(given, 10, MPI_DOUBLE, got, 1, strided, next_rank(), 0, 1, blocks,
                          MPI_REPLACE, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0, k = 0; k < 10; k++) {
        i = k < 3 ? 40 + k : k == 3 ? 0 : 6 + k;
        CHECK(base[i] == 1000 + k);
        CHECK(got[3 * k] == i + 1000 + 3 * k);
        CHECK(got[3 * k + 1] == -1);
    }
    OK(MPI_Type_free(&strided));
    OK(MPI_Type_free(&blocks));
}

// All ranks add into overlapping strides of rank 0 at once.
static void all_at_once(MPI_Win win, double *base)
{
    MPI_Datatype strided;
    double ones[SLOTS];
    OK(MPI_Type_vector(SLOTS / 2, 1, 2, MPI_DOUBLE, &strided));
    OK(MPI_Type_commit(&strided));
    for (int i = 0; i < SLOTS; i++)
        ones[i] = 1;
    memset(base, 0, SLOTS * sizeof *base);
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 10; i++) {
        OK(MPI_Accumulate(ones, SLOTS / 2, MPI_DOUBLE, 0, 0, 1, strided, MPI_SUM, win));
        OK(MPI_Accumulate(ones, SLOTS, MPI_DOUBLE, 0, 0, SLOTS, MPI_DOUBLE, MPI_SUM, win));
    }
    OK(MPI_Win_fence(0, win));
    for (int i = 0; rank == 0 && i < SLOTS; i++)
        CHECK(base[i] == 10 * size * (i % 2 ? 1 : 2));
    OK(MPI_Type_free(&strided));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    double *base = window_of((SLOTS + 4) * sizeof(double), sizeof(double), &win);
    sums_with_gaps(win, base);
    all_at_once(win, base);
    OK(MPI_Win_free(&win));
    return check_end();
}
