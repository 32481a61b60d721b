// What must not be adopted is not, and its windows work like others: locked memory, memory that
// io_uring uses, memory of a process with a limit, or whose filter refuses userfaultfd. Only rank 0
// has such memory; that of the other ranks is adopted. MPI-4.1 section 12.2.1.
// ranks: 2 3
// settings: FOMPI_ADOPT=auto

#define _GNU_SOURCE
#include "adopted.h"
#include "refused_calls.h"
#include <sys/resource.h>
#include <sys/uio.h>

enum { PAGES = 6, LONGS = PAGES * PAGE / 8 };

// All ranks add to all words of all ranks and put one.
static void check_window(const char *what, char *memory, int is_refused)
{
    static long ones[LONGS];
    long *longs = (long *)memory;
    memset(memory, 0, PAGES * PAGE);
    MPI_Win win = window_over(memory, PAGES * PAGE, 8);
    if (is_refused && rank == 0 && is_shared(memory))
        check_failed(__FILE__, __LINE__, "%s: is adopted", what);
    else if (rank > 0)
        check_adopted(memory);
    for (int n = 0; n < LONGS; n++)
        ones[n] = 1;
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; target < size; target++) {
        long before;
        OK(MPI_Accumulate(ones, LONGS, MPI_LONG, target, 0, LONGS, MPI_LONG, MPI_SUM, win));
        OK(MPI_Fetch_and_op(ones, &before, MPI_LONG, target, 5, MPI_SUM, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    for (int n = 0; n < LONGS; n++)
        CHECK_EQ(longs[n], n == 5 ? 2 * size : size);
    CHECK(!is_shared(memory));
}

// Memory that an io_uring has as a buffer: returns its descriptor, or -1 if there is none.
static int ring_over(char *memory)
{
    char parameters[120] = {0};
    struct iovec buffer = {memory + 2 * PAGE, PAGE};
    const int ring = (int)syscall(425, 1, parameters); // io_uring_setup
    if (ring >= 0 && syscall(427, ring, 0, &buffer, 1) == 0) // IORING_REGISTER_BUFFERS
        return ring;
    if (ring >= 0)
        close(ring);
    return -1;
}

int main(int argc, char **argv)
{
    const struct rlimit limit = {1UL << 46, RLIM_INFINITY};
    check_start(&argc, &argv);
    char *memory[5]; // each its own: windows over memory of earlier ones do not move at once
    for (int n = 0; n < 5; n++)
        memory[n] = touched_pages(PAGES);
    if (rank == 0 && size == 3)
        CHECK(refuse_calls(SYS_userfaultfd, SYS_userfaultfd));
    check_window("plain, or with a filter", memory[0], 0);
    const int is_locked = rank == 0 && mlock(memory[1] + PAGE, PAGE) == 0;
    check_window("locked", memory[1], is_locked);
    CHECK_EQ(munlock(memory[1], PAGES * PAGE), 0);
    const int ring = rank == 0 ? ring_over(memory[2]) : -1;
    check_window("a buffer of io_uring", memory[2], ring >= 0);
    check_window("next to such a buffer", memory[3], 0); // whether it is adopted depends on the kernel
    if (ring >= 0)
        close(ring);
    if (rank == 0)
        CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    check_window("with a limit", memory[4], 1);
    return check_end();
}
