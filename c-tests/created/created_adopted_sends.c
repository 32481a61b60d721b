// Large messages from and to memory of windows, before, while and after it is adopted: a cache of
// registered memory or of peers' pages, such as UCX has, must never answer with pages that the
// memory has no more. The program also frees the memory and maps it anew at the same address.
// MPI-4.1 section 12.2.1.
// ranks: 2 3
// settings: FOMPI_ADOPT=always

#define _GNU_SOURCE
#include "adopted.h"

enum { PAGES = 300, BYTES = PAGES * PAGE, TURNS = 12, SENDS = 3 };

static void fill(unsigned char *memory, int seed)
{
    for (int at = 0; at < BYTES; at++)
        memory[at] = (unsigned char)(seed * 31 + at / 64 * 7 + at);
}

static void check_filled(const unsigned char *memory, int seed)
{
    for (int at = 0; at < BYTES; at++)
        if (memory[at] != (unsigned char)(seed * 31 + at / 64 * 7 + at))
            check_failed(__FILE__, __LINE__, "byte %d is %d, seed %d", at, memory[at], seed);
}

// Each rank sends its memory to the next one, and receives into other memory of the same kind.
static void pass(unsigned char *from, unsigned char *to, int *seed)
{
    for (int turn = 0; turn < SENDS; turn++) {
        *seed += 1;
        fill(from, *seed * 4 + rank);
        OK(MPI_Sendrecv(from, BYTES, MPI_BYTE, next_rank(), 3, to, BYTES, MPI_BYTE, previous_rank(),
                        3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        check_filled(to, *seed * 4 + previous_rank());
        check_filled(from, *seed * 4 + rank);
    }
}

// A get of what the target sends as well.
static void read_next(MPI_Win win, const unsigned char *from, int seed)
{
    static unsigned char got[BYTES];
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(got, BYTES, MPI_BYTE, next_rank(), 0, BYTES, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    check_filled(got, seed * 4 + next_rank());
    check_filled(from, seed * 4 + rank);
}

int main(int argc, char **argv)
{
    int seed = 0;
    check_start(&argc, &argv);
    unsigned char *from = (unsigned char *)touched_pages(PAGES);
    unsigned char *to = (unsigned char *)touched_pages(PAGES);
    for (int turn = 0; turn < TURNS; turn++) {
        pass(from, to, &seed);
        MPI_Win win = window_over(from, BYTES, 1), other = MPI_WIN_NULL;
        check_adopted(from);
        pass(from, to, &seed);
        if (turn % 2)
            other = window_over(to, BYTES, 1);
        pass(from, to, &seed);
        read_next(win, from, seed);
        OK(MPI_Win_free(&win));
        pass(from, to, &seed);
        if (turn % 2)
            OK(MPI_Win_free(&other));
        pass(to, from, &seed);
        if (turn % 3 == 0) { // other pages at the same address
            const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
            CHECK_EQ(munmap(from, BYTES), 0);
            CHECK(mmap(from, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) == from);
        }
    }
    return check_end();
}
