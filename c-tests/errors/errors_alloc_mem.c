// Wrong arguments of MPI_Alloc_mem and more memory than there is return errors, through the error
// handler of MPI_COMM_SELF (before MPI-4.0 of MPI_COMM_WORLD), and nothing else is harmed.
// MPI-4.1 sections 9.2 and 9.3.
// ranks: 1 2
// settings: FOMPI_STRICT=1

#include "check.h"

static int called;

static void count(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    called++;
}

int main(int argc, char **argv)
{
    MPI_Errhandler counting;
    char *memory = NULL;
    check_start(&argc, &argv);
    OK(MPI_Comm_create_errhandler(count, &counting));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, counting));
    EXPECT(MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory), MPI_ERR_ARG, MPI_ERR_SIZE);
    EXPECT(MPI_Alloc_mem(64, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK_EQ(called, 2);
    EXPECT(MPI_Alloc_mem((MPI_Aint)1 << 45, MPI_INFO_NULL, &memory), MPI_ERR_NO_MEM);
    EXPECT(MPI_Alloc_mem(INTPTR_MAX, MPI_INFO_NULL, &memory), MPI_ERR_NO_MEM);
    CHECK_EQ(called, 4);
    OK(MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory));
    memset(memory, 1, 1 << 20);
    OK(MPI_Free_mem(memory));
    CHECK_EQ(called, 4);
    OK(MPI_Errhandler_free(&counting));
    return check_end();
}
