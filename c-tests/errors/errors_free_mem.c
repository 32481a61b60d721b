// An address that MPI_Alloc_mem did not return, in memory that it did, and one that was freed before
// are MPI_ERR_BASE. MPI-4.1 section 9.2.
// ranks: 1
// settings: FOMPI_STRICT=1

#include "check.h"

int main(int argc, char **argv)
{
    char *memory, *other;
    check_start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory));
    OK(MPI_Alloc_mem(1000, MPI_INFO_NULL, &other));
    EXPECT(MPI_Free_mem(memory + 64), MPI_ERR_BASE);
    memset(memory, 1, 1000);
    OK(MPI_Free_mem(memory));
    EXPECT(MPI_Free_mem(memory), MPI_ERR_BASE);
    memset(other, 1, 1000);
    OK(MPI_Free_mem(other));
    return check_end();
}
