// Windows that are allocated and freed again and again: each is zero at first, whatever was in its
// memory before, and belongs to itself alone. Windows of equal and of other sizes, units and kinds, with
// others between, on two communicators. MPI-4.1 sections 12.2.2 and 12.2.3.
// ranks: 1 2 4
// plain ranks: 2

#include "created.h"
#include "nodes.h"

enum { NOTHING, ALL, ONE_PAGE_BY_OTHERS, WAYS };

static MPI_Comm comms[2];

typedef struct {
    MPI_Win win;
    char *base;
    MPI_Aint bytes;
    int unit;
} Window;

// Memory of libfompi is zero; the standard does not say so.
static void is_zero(const Window *window)
{
    if (!library_is_here())
        return;
    for (MPI_Aint i = 0; i < window->bytes; i++)
        if (window->base[i] != 0) {
            CHECK_EQ(window->base[i], 0);
            return;
        }
}

static Window made(MPI_Comm comm, MPI_Aint bytes, int unit, int shared)
{
    Window window = {.bytes = bytes, .unit = unit};
    if (shared && ranks_per_node() == 0)
        OK(MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, comm, &window.base, &window.win));
    else
        OK(MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, comm, &window.base, &window.win));
    is_zero(&window);
    return window;
}

// Writes to the window; the next rank's memory gets `value` at the byte that stands `at` pages in.
static void touched(Window *window, int way, char value, MPI_Aint of_next)
{
    if (way == ALL)
        memset(window->base, value, window->bytes);
    if (way == ONE_PAGE_BY_OTHERS) {
        MPI_Aint at = of_next / 2 / window->unit;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, window->win));
        OK(MPI_Put(&value, 1, MPI_CHAR, next_rank(), at, 1, MPI_CHAR, window->win));
        OK(MPI_Win_unlock(next_rank(), window->win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window->win));
        CHECK_EQ(window->base[window->bytes / 2 / window->unit * window->unit], value);
        OK(MPI_Win_unlock(rank, window->win));
    }
}

static void equal_sizes(MPI_Aint bytes, int shared)
{
    for (int round = 0; round < 4 * WAYS; round++) {
        // Each way comes after each other one.
        int way = round < 2 * WAYS ? round / 2 : round % WAYS;
        Window window = made(comms[0], bytes, round % 2 ? 1 : 8, shared);
        touched(&window, way, (char)(1 + round), bytes);
        OK(MPI_Win_free(&window.win));
    }
}

// The memory of windows that exist at once is not the same, in whatever order they are freed.
static void side_by_side(MPI_Aint bytes)
{
    for (int round = 0; round < 8; round++) {
        Window windows[3];
        for (int i = 0; i < 3; i++) {
            windows[i] = made(comms[(round + i) % 3 == 0], bytes, 1, 0);
            touched(&windows[i], ALL, (char)(10 * round + i), bytes);
        }
        for (int i = 0; i < 3; i++) {
            int which = round % 2 ? 2 - i : i;
            CHECK_EQ(windows[which].base[0], (char)(10 * round + which));
            CHECK_EQ(windows[which].base[bytes - 1], (char)(10 * round + which));
            OK(MPI_Win_free(&windows[which].win));
        }
    }
}

static MPI_Aint size_of(int of, int round, MPI_Aint bytes)
{
    if (round % 3 == 1 && of == 0)
        return bytes / 2;
    return round % 3 == 2 && of == size - 1 ? 2 * bytes : bytes;
}

// On some ranks the size is that of the window before, on others it is not. A window of another
// communicator, which may get the memory that one of them gave up, stays as it is.
static void other_sizes(MPI_Aint bytes)
{
    for (int round = 0; round < 12; round++) {
        Window window = made(comms[0], size_of(rank, round, bytes), 1, 0);
        Window other = made(comms[1], bytes, 1, 0);
        touched(&other, ALL, 99, bytes);
        touched(&window, round / 3 % WAYS, (char)(1 + round), size_of(next_rank(), round, bytes));
        OK(MPI_Win_free(&window.win));
        for (int i = 0; i < 3; i++) {
            window = made(comms[0], size_of(rank, round + i, bytes), 1, 0);
            OK(MPI_Win_free(&window.win));
        }
        for (MPI_Aint i = 0; i < bytes; i += 8)
            if (other.base[i] != 99) {
                CHECK_EQ(other.base[i], 99);
                break;
            }
        OK(MPI_Win_free(&other.win));
    }
}

// A size that one rank gets wrong makes no window, and changes nothing for the next one.
static void with_a_failure(MPI_Aint bytes)
{
    OK(MPI_Comm_set_errhandler(comms[0], MPI_ERRORS_RETURN));
    for (int round = 0; round < 4 && library_is_here(); round++) {
        Window window = made(comms[0], bytes, 1, 0);
        touched(&window, ALL, (char)(1 + round), bytes);
        OK(MPI_Win_free(&window.win));
        MPI_Aint wrong = rank == size - 1 ? -1 : bytes;
        CHECK(MPI_Win_allocate(wrong, 1, MPI_INFO_NULL, comms[0], &window.base, &window.win) != 0);
    }
    OK(MPI_Comm_set_errhandler(comms[0], MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char **argv)
{
    static const MPI_Aint sizes[] = {64, 65536 + 4096, 300 << 10, 1 << 20};
    check_start(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        equal_sizes(sizes[i], 0);
        equal_sizes(sizes[i], 1);
        side_by_side(sizes[i]);
        other_sizes(sizes[i]);
        with_a_failure(sizes[i]);
    }
    OK(MPI_Comm_free(&comms[0]));
    OK(MPI_Comm_free(&comms[1]));
    return check_end();
}
