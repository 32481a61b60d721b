// One put and one get of more than 2^31 bytes, in a window of that size. Needs 5 GB of memory, so
// it runs only when FOMPI_TEST_LARGE is 1. MPI-4.1 section 12.3.
// ranks: 2

#include "check.h"

static const size_t bytes = (size_t)2200 << 20;

// A value that depends on the whole place, not on its lower bits alone.
static unsigned char value_at(size_t place) { return (unsigned char)(place >> 20 ^ place); }

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Datatype mebibyte;
    unsigned char *base;
    const char *wanted = getenv("FOMPI_TEST_LARGE");
    check_start_within(115, &argc, &argv);
    if (wanted == NULL || strcmp(wanted, "1") != 0)
        return check_end();
    OK(MPI_Win_allocate(rank == 1 ? (MPI_Aint)bytes : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                        &win));
    OK(MPI_Type_contiguous(1 << 20, MPI_BYTE, &mebibyte));
    OK(MPI_Type_commit(&mebibyte));
    OK(MPI_Win_fence(0, win));
    unsigned char *local = rank == 0 ? malloc(bytes) : NULL;
    if (rank == 0) {
        for (size_t i = 0; i < bytes; i++)
            local[i] = value_at(i);
        OK(MPI_Put(local, 2200, mebibyte, 1, 0, 2200, mebibyte, win));
    }
    OK(MPI_Win_fence(0, win));
    if (rank == 1)
        for (size_t i = 0; i < bytes; i += 997)
            CHECK_EQ(base[i], value_at(i));
    OK(MPI_Win_fence(0, win));
    if (rank == 0) {
        memset(local, 0, bytes);
        OK(MPI_Get(local, 2200, mebibyte, 1, 0, 2200, mebibyte, win));
    }
    OK(MPI_Win_fence(0, win));
    if (rank == 0)
        for (size_t i = 0; i < bytes; i += 997)
            CHECK_EQ(local[i], value_at(i));
    free(local);
    OK(MPI_Type_free(&mebibyte));
    OK(MPI_Win_free(&win));
    return check_end();
}
