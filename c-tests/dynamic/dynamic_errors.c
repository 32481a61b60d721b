// Wrong calls of MPI_Win_attach and MPI_Win_detach: a window of another flavour, a negative size,
// no memory, a region that is not attached, or no longer. The window works as before.
// MPI-4.1 sections 12.2.4 and 12.6.2.
// ranks: 1 2 4

#include "dynamic.h"

enum { BYTES = 128 };

static unsigned char memory[4 * BYTES];

static void other_flavours(void)
{
    MPI_Win wins[3];
    void *base;
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &wins[0]));
    // Over several nodes there are no shared windows.
    OK(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &wins[1]));
    OK(MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[2]));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Win_set_errhandler(wins[i], MPI_ERRORS_RETURN));
        EXPECT(MPI_Win_attach(wins[i], memory, BYTES), MPI_ERR_RMA_FLAVOR);
        EXPECT(MPI_Win_detach(wins[i], memory), MPI_ERR_RMA_FLAVOR);
        OK(MPI_Win_free(&wins[i]));
    }
}

static void wrong_windows(void)
{
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    EXPECT(MPI_Win_attach(MPI_WIN_NULL, memory, BYTES), MPI_ERR_WIN);
    EXPECT(MPI_Win_detach(MPI_WIN_NULL, memory), MPI_ERR_WIN);
}

static void wrong_memory(MPI_Win win)
{
    EXPECT(MPI_Win_attach(win, memory, -1), MPI_ERR_SIZE, MPI_ERR_ARG);
    EXPECT(MPI_Win_attach(win, NULL, BYTES), MPI_ERR_RMA_ATTACH, MPI_ERR_BASE, MPI_ERR_BUFFER,
           MPI_ERR_ARG);
    // It would reach beyond all addresses.
    EXPECT(MPI_Win_attach(win, memory, INT64_MAX), MPI_ERR_RMA_ATTACH, MPI_ERR_SIZE, MPI_ERR_ARG);
}

static void not_attached(MPI_Win win, const void *base)
{
    EXPECT(MPI_Win_detach(win, base), MPI_ERR_RMA_ATTACH, MPI_ERR_BASE, MPI_ERR_BUFFER,
           MPI_ERR_ARG);
}

// The region of the next rank takes a value.
static void works(MPI_Win win, MPI_Aint there, int value)
{
    int got = -1;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), there, 1, MPI_INT, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Get(&got, 1, MPI_INT, next_rank(), there, 1, MPI_INT, win));
    OK(MPI_Win_unlock(next_rank(), win));
    CHECK_EQ(got, value);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    MPI_Win win = dynamic_window();
    exchange(memory + BYTES, places);
    not_attached(win, memory);
    not_attached(win, NULL);
    wrong_memory(win);
    OK(MPI_Win_attach(win, memory + BYTES, BYTES));
    wrong_memory(win);
    // Only the base of a region names it.
    not_attached(win, memory);
    not_attached(win, memory + BYTES + 1);
    not_attached(win, memory + 2 * BYTES);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    works(win, places[next_rank()], 5);
    OK(MPI_Win_detach(win, memory + BYTES));
    not_attached(win, memory + BYTES);
    OK(MPI_Win_attach(win, memory + BYTES, BYTES));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    works(win, places[next_rank()], 6);
    OK(MPI_Win_detach(win, memory + BYTES));
    OK(MPI_Win_free(&win));
    other_flavours();
    wrong_windows();
    return check_end();
}
