// Ranks in a control group whose memory is limited (to so many MiB, as the argument says): memory
// that nobody touches takes none of it, and what can never fit is MPI_ERR_NO_MEM on all ranks. The
// ranks of a window count together.

#include "robust.h"

static const MPI_Aint mib = 1 << 20;

// Touches one MiB of it.
static void use_a_little(char *base)
{
    memset(base + 3 * mib, rank + 1, (size_t)mib);
    CHECK(base[3 * mib] == rank + 1 && base[5 * mib] == 0);
}

static void fits(MPI_Aint bytes, int shared)
{
    MPI_Win win;
    char *base, byte = 0;
    OK(shared ? MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win)
              : MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    if (bytes > 0)
        use_a_little(base);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(&byte, 1, MPI_CHAR, 0, 3 * mib, 1, MPI_CHAR, win));
    OK(MPI_Win_fence(0, win));
    CHECK(byte == 1);
    OK(MPI_Win_free(&win));
}

static void is_refused(MPI_Aint bytes, int shared)
{
    MPI_Win win;
    char *base;
    EXPECT(shared ? MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win)
                  : MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win),
           MPI_ERR_NO_MEM);
}

// Memory of each rank's own.
static void allocated(MPI_Aint bytes)
{
    MPI_Win win;
    char *base, byte = 0;
    OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &base));
    use_a_little(base);
    OK(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(&byte, 1, MPI_CHAR, (rank + 1) % size, 3 * mib, 1, MPI_CHAR, win));
    OK(MPI_Win_fence(0, win));
    CHECK(byte == (rank + 1) % size + 1);
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(base));
}

int main(int argc, char **argv)
{
    char *none;
    start(60, &argc, &argv);
    const MPI_Aint limit = argc > 1 ? atoi(argv[1]) * mib : 300 * mib, most = limit / 6 * 5;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int shared = 0; shared < 2; shared++) {
        // All of it on one rank, then in equal parts.
        fits(rank == 0 ? most : 0, shared);
        fits(most / size, shared);
        is_refused(limit + mib, shared);
        is_refused(rank == 0 ? limit + mib : 0, shared);
        is_refused(limit / size + mib, shared);
        fits(most / size, shared);
    }
    allocated(most);
    EXPECT(MPI_Alloc_mem(limit + mib, MPI_INFO_NULL, &none), MPI_ERR_NO_MEM);
    return MPI_Finalize();
}
