// Windows that are made in a loop: to move the pages of each would make the creation of windows
// slower than without the library, so memory moves at a fixed rate. Of memory that was in no window
// before, 64 MiB may move at once: that of a larger first window stays where it is, and that of 32
// small windows moves, whether they are used or not. Others may move or not. Each window works.
// MPI-4.1 section 12.2.1.
// ranks: 2 3
// settings: FOMPI_ADOPT=auto

#include "adopted.h"

enum { PAGES = 3, BYTES = PAGES * PAGE, AT_ONCE = 32, WINDOWS = 50 };

// Puts a number to the next rank, as word `number` of the memory.
static void put(MPI_Win win, int number)
{
    const long mine = 100 * number + rank;
    const int next = (rank + 1) % size;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    OK(MPI_Put(&mine, 1, MPI_LONG, next, 8 * number, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(next, win));
}

static void check_word(const char *memory, int number)
{
    CHECK_EQ(((const long *)memory)[number], 100 * number + (rank + size - 1) % size);
}

// A first window that is larger than what may move at once.
static void large_window(void)
{
    const size_t bytes = (64L << 20) + PAGE;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    MPI_Win win = window_over(memory, bytes, 1);
    CHECK(!is_shared(memory));
    put(win, 0);
    OK(MPI_Win_free(&win));
    check_word(memory, 0);
    munmap(memory, bytes);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    large_window();
    char *all = touched_pages(PAGES + AT_ONCE);
    for (int number = 0; number < WINDOWS; number++) {
        const int is_used = number % 2, is_new = number < AT_ONCE;
        char *memory = all + (is_new ? number * PAGE : 0);
        MPI_Win win = window_over(memory, BYTES, 1);
        if (is_new)
            check_adopted(memory);
        if (is_used)
            put(win, number);
        OK(MPI_Win_free(&win));
        CHECK(!is_shared(memory));
        if (is_used)
            check_word(memory, number);
    }
    return check_end();
}
