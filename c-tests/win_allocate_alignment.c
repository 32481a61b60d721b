// The key mpi_minimum_memory_alignment is honoured by MPI_Win_allocate, by MPI_Win_allocate_shared
// where the parts need not be contiguous, and else for the first part. MPI-4.1 sections 9.2, 12.2.2
// and 12.2.3.
// ranks: 1 2 4

#include "check.h"

int main(int argc, char **argv)
{
    char text[24];
    check_start(&argc, &argv);
    for (long alignment = 16; alignment <= 4 << 20; alignment *= 4) {
        MPI_Info info;
        MPI_Win win, shared, contiguous;
        char *base, *shared_base, *first;
        snprintf(text, sizeof text, "%ld", alignment);
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", text));
        OK(MPI_Win_allocate(100 + rank, 1, info, MPI_COMM_WORLD, &base, &win));
        OK(MPI_Win_allocate_shared(rank == 0 ? 0 : 100 + rank, 1, info, MPI_COMM_WORLD, &first,
                                   &contiguous));
        if (rank == 1)
            CHECK_EQ((uintptr_t)first % (uintptr_t)alignment, 0);
        memset(first, 3, (size_t)(rank == 0 ? 0 : 100 + rank));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
        OK(MPI_Win_allocate_shared(100 + rank, 1, info, MPI_COMM_WORLD, &shared_base, &shared));
        CHECK_EQ((uintptr_t)base % (uintptr_t)alignment, 0);
        CHECK_EQ((uintptr_t)shared_base % (uintptr_t)alignment, 0);
        memset(base, 1, (size_t)(100 + rank));
        memset(shared_base, 2, (size_t)(100 + rank));
        OK(MPI_Win_free(&win));
        OK(MPI_Win_free(&shared));
        OK(MPI_Win_free(&contiguous));
        OK(MPI_Info_free(&info));
    }
    return check_end();
}
