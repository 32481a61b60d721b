// Two ranks make and free 1,000 dynamic windows (more ranks 200), each with memory attached and
// reached, the first 100 of them alive at once; no descriptor is left open.
// MPI-4.1 sections 12.2.4 and 12.2.5.
// ranks: 2 4
// plain ranks: 2

#include "dynamic.h"

#include <dirent.h>

enum { ALIVE = 100, IN_A_ROW = 900, WARM = 50 };

static int open_descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    CHECK(directory != NULL);
    while (readdir(directory) != NULL)
        count++;
    CHECK_EQ(closedir(directory), 0);
    return count;
}

static void many_alive(MPI_Aint there, int *memory)
{
    MPI_Win wins[ALIVE];
    for (int i = 0; i < ALIVE; i++) {
        wins[i] = dynamic_window();
        OK(MPI_Win_attach(wins[i], memory + i, sizeof(int)));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < ALIVE; i++) {
        const int value = 1000 * rank + i;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, wins[i]));
        OK(MPI_Put(&value, 1, MPI_INT, next_rank(),
                   MPI_Aint_add(there, i * (MPI_Aint)sizeof(int)), 1, MPI_INT, wins[i]));
        OK(MPI_Win_unlock(next_rank(), wins[i]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = ALIVE - 1; i >= 0; i--) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, wins[i]));
        CHECK_EQ(memory[i], 1000 * previous_rank() + i);
        OK(MPI_Win_unlock(rank, wins[i]));
        if (i % 2 == 0)
            OK(MPI_Win_detach(wins[i], memory + i));
        OK(MPI_Win_free(&wins[i]));
    }
}

static void many_in_a_row(MPI_Aint there, int *memory)
{
    int descriptors = 0;
    for (int i = 0; i < IN_A_ROW / (size > 2 ? 9 : 1); i++) {
        const int value = 1000 * rank + i;
        MPI_Win win = dynamic_window();
        OK(MPI_Win_attach(win, memory, ALIVE * sizeof(int)));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(&value, 1, MPI_INT, next_rank(), there, 1, MPI_INT, win));
        OK(MPI_Win_fence(0, win));
        CHECK_EQ(memory[0], 1000 * previous_rank() + i);
        OK(MPI_Win_detach(win, memory));
        OK(MPI_Win_free(&win));
        if (i == WARM)
            descriptors = open_descriptors();
    }
    CHECK_EQ(open_descriptors(), descriptors);
}

int main(int argc, char **argv)
{
    static int memory[ALIVE];
    MPI_Aint places[RANKS_MAX];
    check_start(&argc, &argv);
    exchange(memory, places);
    many_alive(places[next_rank()], memory);
    many_in_a_row(places[next_rank()], memory);
    return check_end();
}
