// The key mpi_minimum_memory_alignment is honoured by MPI_Alloc_mem; a value that is no power of two
// and keys that nobody knows do not matter. MPI-4.1 section 9.2.
// ranks: 1

#include "check.h"

static const MPI_Aint sizes[] = {0, 1, 100, 5000, 3 << 20};

static void check_aligned(MPI_Info info, uintptr_t alignment)
{
    enum { SIZES = sizeof sizes / sizeof *sizes };
    char *memory[SIZES];
    for (int i = 0; i < SIZES; i++) {
        OK(MPI_Alloc_mem(sizes[i], info, &memory[i]));
        if (sizes[i] > 0)
            CHECK_EQ((uintptr_t)memory[i] % alignment, 0);
        memset(memory[i], i, (size_t)sizes[i]);
    }
    for (int i = 0; i < SIZES; i++) {
        for (MPI_Aint at = 0; at < sizes[i]; at += 999)
            CHECK_EQ(memory[i][at], i);
        OK(MPI_Free_mem(memory[i]));
    }
}

int main(int argc, char **argv)
{
    char text[20];
    MPI_Info info;
    check_start(&argc, &argv);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "a_key_that_nobody_knows", "true"));
    check_aligned(info, sizeof(double));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "24"));
    check_aligned(info, 1);
    for (int alignment = 1; alignment <= 4 << 20; alignment *= 2) {
        snprintf(text, sizeof text, "%d", alignment);
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", text));
        check_aligned(info, (uintptr_t)alignment);
    }
    OK(MPI_Info_free(&info));
    return check_end();
}
