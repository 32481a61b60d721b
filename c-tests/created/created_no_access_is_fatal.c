// A put to a page that is not there ends the job by MPI_ERRORS_ARE_FATAL, with a text that names
// the target and the first address that could not be written. MPI-4.1 sections 9.3 and 12.6.2.
// ranks: 2 4
// aborts: 0x200000001000 of rank 1\b|rank 1\b.*0x200000001000

#define _GNU_SOURCE

#include "created.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
    const size_t page = 4096;
    char values[2 * 4096] = {0};
    check_start(&argc, &argv);
    char *memory = mmap((void *)0x200000000000, 2 * page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(memory == (void *)0x200000000000);
    CHECK_EQ(munmap(memory + page, page), 0);
    MPI_Win win = window_over(memory, 2 * (MPI_Aint)page, 1);
    OK(MPI_Win_lock_all(0, win));
    if (rank == 0) {
        MPI_Put(values, 2 * (int)page - 100, MPI_BYTE, 1, 100, 2 * (int)page - 100, MPI_BYTE, win);
        MPI_Win_flush(1, win);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
