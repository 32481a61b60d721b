// Memory of a window that its owner discards with madvise(2) reads as zero, for the owner and for
// all other ranks, also while its pages are adopted. What lies around it stays, and what other ranks
// put there later arrives. MPI-4.1 section 12.2.1. Not for windows that an RDMA device reaches
// (c-tests/nodes-exceptions): their pages are registered, and the device keeps using the old pages
// after a discard, whether they are adopted or not. MPICH 4.0.2 alone fails in the same way over
// Soft-RoCE (UCX_TLS=rc_verbs,ud_verbs,self in scripts/dev/rdma-vm).
// ranks: 1 2 3
// settings: FOMPI_ADOPT=auto

#define _GNU_SOURCE
#include "adopted.h"

enum { PAGES = 40, FIRST = 4, WINDOW = 30, TURNS = 6 };

// What the bytes of a page must be: those of a window's page are its number and the turn.
static int expected[PAGES];

static void fill(MPI_Win win, char *memory, int turn)
{
    static char page[PAGE];
    OK(MPI_Win_lock_all(0, win));
    for (int n = 0; n < WINDOW; n++) {
        memset(page, 1 + (n + turn) % 100, PAGE);
        OK(MPI_Put(page, PAGE, MPI_BYTE, next_rank(), n * PAGE, PAGE, MPI_BYTE, win));
        OK(MPI_Win_flush(next_rank(), win));
        expected[FIRST + n] = 1 + (n + turn) % 100;
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int n = 0; n < PAGES; n++)
        CHECK_EQ(memory[n * PAGE + 5], expected[n]);
}

static void discard(char *memory, int first, int end, int advice)
{
    CHECK_EQ(madvise(memory + first * PAGE, (size_t)(end - first) * PAGE, advice), 0);
    for (int n = first; n < end; n++)
        expected[n] = 0;
}

static void check(MPI_Win win, char *memory)
{
    char got[WINDOW];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int n = 0; n < WINDOW; n++)
        OK(MPI_Get(got + n, 1, MPI_BYTE, next_rank(), n * PAGE + 5, 1, MPI_BYTE, win));
    OK(MPI_Win_unlock_all(win));
    for (int n = 0; n < WINDOW; n++)
        CHECK_EQ(got[n], expected[FIRST + n]);
    for (int n = 0; n < PAGES; n++)
        CHECK_EQ(memory[n * PAGE + 5], expected[n]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    char *memory = touched_pages(PAGES);
    for (int n = 0; n < PAGES; n++)
        expected[n] = 1;
    MPI_Win win = window_over(memory + FIRST * PAGE, WINDOW * PAGE, 1);
    check_adopted(memory + FIRST * PAGE);
    for (int turn = 0; turn < TURNS; turn++) {
        fill(win, memory, turn);
        discard(memory, 10, 12, MADV_DONTNEED);
        check(win, memory);
        discard(memory, FIRST - 2, FIRST + 3, MADV_DONTNEED); // across the begin of the window
        discard(memory, FIRST + WINDOW - 1, PAGES, MADV_DONTNEED);
        if (is_shared(memory + FIRST * PAGE)) // else the system may take its time
            discard(memory, 20, 25, MADV_FREE);
        check(win, memory);
        memset(memory, 1, FIRST * PAGE);
        memset(memory + (FIRST + WINDOW) * PAGE, 1, (PAGES - FIRST - WINDOW) * PAGE);
        for (int n = 0; n < PAGES; n++)
            expected[n] = n < FIRST || n >= FIRST + WINDOW ? 1 : expected[n];
        CHECK(madvise(memory + 8, PAGE, MADV_DONTNEED) != 0); // not the begin of a page
        check(win, memory);
    }
    fill(win, memory, TURNS);
    OK(MPI_Win_free(&win));
    CHECK(!is_shared(memory + FIRST * PAGE));
    for (int n = 0; n < PAGES; n++)
        CHECK_EQ(memory[n * PAGE + 5], expected[n]);
    discard(memory, 0, PAGES, MADV_DONTNEED);
    for (int n = 0; n < PAGES; n++)
        CHECK_EQ(memory[n * PAGE + 5], 0);
    CHECK_EQ(munmap(memory, PAGES * PAGE), 0);
    return check_end();
}
