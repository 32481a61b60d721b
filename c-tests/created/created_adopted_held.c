// Pages that a pipe holds by reference (vmsplice), as a device or a transfer does: what the program
// stores after MPI_Win_create, and after MPI_Win_free, is what the holder reads, as without a
// window. MPI-4.1 sections 12.2.1 and 12.2.5.
// ranks: 2 3
// settings: FOMPI_ADOPT=always

#define _GNU_SOURCE
#include "adopted.h"
#include <fcntl.h>
#include <sys/uio.h>

enum { PAGES = 600, HELD = 520 };

// Gives a page to a pipe, which refers to it until it is read.
static void lend(int *ends, char *page)
{
    struct iovec part = {page, PAGE};
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(vmsplice(ends[1], &part, 1, 0), PAGE);
}

static void check_read(int *ends, int value)
{
    char got[PAGE];
    CHECK_EQ(read(ends[0], got, PAGE), PAGE);
    CHECK_EQ(got[7], value);
    close(ends[0]);
    close(ends[1]);
}

static void put_to_next(MPI_Win win, char value)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_CHAR, next_rank(), 3 * PAGE, 1, MPI_CHAR, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    int ends[2];
    check_start(&argc, &argv);
    char *memory = touched_pages(PAGES);
    // Held before the window is made.
    lend(ends, memory + HELD * PAGE);
    MPI_Win win = window_over(memory, PAGES * PAGE, 1);
    put_to_next(win, 5);
    memory[HELD * PAGE + 7] = 2;
    check_read(ends, 2);
    OK(MPI_Win_free(&win));
    CHECK_EQ(memory[3 * PAGE], 5);
    // Held from within the life of the window until it is freed.
    win = window_over(memory, PAGES * PAGE, 1);
    check_adopted(memory);
    put_to_next(win, 6);
    lend(ends, memory + HELD * PAGE);
    OK(MPI_Win_free(&win));
    memory[HELD * PAGE + 7] = 3;
    check_read(ends, 3);
    CHECK_EQ(memory[3 * PAGE], 6);
    // Nothing holds it any more: it is private after the next window.
    win = window_over(memory, PAGES * PAGE, 1);
    put_to_next(win, 7);
    OK(MPI_Win_free(&win));
    CHECK_EQ(memory[3 * PAGE], 7);
    CHECK(!is_shared(memory));
    return check_end();
}
