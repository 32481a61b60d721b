// Windows that are made over the same memory again and again: to move the pages of windows that are
// freed unused would make MPI_Win_create and MPI_Win_free slower than without the library. So the
// memory moves at the creation of the first window, and of a later one only if the last two were
// used. Each window works, whether its memory has moved or not. MPI-4.1 section 12.2.1.
// ranks: 2 3
// settings: FOMPI_ADOPT=auto

#include "adopted.h"

enum { PAGES = 3, BYTES = PAGES * PAGE };

// Makes a window, puts a number to the next rank if it shall be used, and frees it. The memory must
// move at its creation, or must not.
static void one_window(char *memory, int number, int is_used, int must_move)
{
    MPI_Win win = window_over(memory, BYTES, 1);
    const long mine = 100 * number + rank;
    if (must_move)
        check_adopted(memory);
    else if (can_adopt())
        CHECK(!is_shared(memory));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (is_used) {
        const int next = (rank + 1) % size;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
        OK(MPI_Put(&mine, 1, MPI_LONG, next, 8 * number, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(next, win));
    }
    OK(MPI_Win_free(&win));
    CHECK(!is_shared(memory));
    if (is_used)
        CHECK_EQ(((long *)memory)[number], 100 * number + (rank + size - 1) % size);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    char *memory = touched_pages(PAGES), *other = touched_pages(PAGES);
    enum { UNUSED_ONE, USED };
    enum { STAYS, MOVES };
    one_window(memory, 0, USED, MOVES);
    one_window(memory, 1, USED, STAYS);
    one_window(memory, 2, USED, MOVES); // two were used
    one_window(memory, 3, UNUSED_ONE, MOVES);
    for (int number = 4; number < 20; number++)
        one_window(memory, number, UNUSED_ONE, STAYS);
    one_window(other, 0, USED, STAYS); // unused ones forbid it for other memory, too
    one_window(other, 1, USED, STAYS);
    one_window(other, 2, USED, MOVES);
    one_window(memory, 20, USED, STAYS);
    one_window(memory, 21, USED, STAYS);
    one_window(memory, 22, USED, MOVES);
    return check_end();
}
