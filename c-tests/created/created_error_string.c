// MPI_Error_string names the rank and the address that could not be reached, and MPI_Error_class
// its class. MPI-4.1 sections 9.4 and 9.5; the text is libfompi's.
// ranks: 2

#include "created.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
    int value = 1, length, class;
    char text[MPI_MAX_ERROR_STRING], expected[100];
    check_start(&argc, &argv);
    if (!library_is_here())
        return check_end();
    char *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    MPI_Aint mine, theirs;
    OK(MPI_Get_address(memory, &mine));
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, 1 - rank, 0, &theirs, 1, MPI_AINT, 1 - rank, 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI_Win win = returning_window_over(memory, 4096, 1);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, win));
    OK(MPI_Put(&value, 1, MPI_INT, 1 - rank, 100, 1, MPI_INT, win)); // not done before the unlock
    const int code = MPI_Win_unlock(1 - rank, win);
    OK(MPI_Error_class(code, &class));
    CHECK_EQ(class, MPI_ERR_RMA_RANGE);
    OK(MPI_Error_string(code, text, &length));
    snprintf(expected, sizeof expected, "0x%llx of rank %d", (unsigned long long)theirs + 100,
             1 - rank);
    if (strstr(text, expected) == NULL)
        check_failed(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", text, expected);
    OK(MPI_Win_free(&win));
    CHECK_EQ(munmap(memory, 4096), 0);
    return check_end();
}
