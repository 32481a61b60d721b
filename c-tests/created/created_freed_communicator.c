// A window lives on when its communicator is freed, and is freed after it. MPI-4.1 sections 7.4.3
// and 12.2.5.
// ranks: 1 2 4

#include "created.h"

enum { TURNS = 30, LONGS = 100 };

// Every rank counts at every target.
static void use(MPI_Win win, long *memory, int ranks)
{
    const long one = 1;
    long before;
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; target < ranks; target++) {
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, 7, MPI_SUM, win));
        OK(MPI_Put(&one, 1, MPI_LONG, target, 20 + rank, 1, MPI_LONG, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(memory[7], ranks);
    CHECK_EQ(memory[20 + rank], 1);
    OK(MPI_Win_fence(0, win));
}

int main(int argc, char **argv)
{
    MPI_Win windows[TURNS];
    long *memory[TURNS];
    check_start(&argc, &argv);
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Comm comm;
        int ranks;
        // All ranks, or the even ones and the odd ones by themselves.
        if (turn % 3 == 0)
            OK(MPI_Comm_split(MPI_COMM_WORLD, size > 2 ? rank % 2 : 0, rank, &comm));
        else
            OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_size(comm, &ranks));
        memory[turn] = heap_memory(LONGS * sizeof(long));
        OK(MPI_Win_create(memory[turn], LONGS * sizeof(long), sizeof(long), MPI_INFO_NULL, comm,
                          &windows[turn]));
        OK(MPI_Comm_free(&comm));
        use(windows[turn], memory[turn], ranks);
        // Half of them are freed at once, the others live on together with their successors.
        if (turn % 2 == 0)
            OK(MPI_Win_free(&windows[turn]));
    }
    for (int turn = 1; turn < TURNS; turn += 2) {
        MPI_Group group;
        int ranks;
        OK(MPI_Win_get_group(windows[turn], &group));
        OK(MPI_Group_size(group, &ranks));
        OK(MPI_Group_free(&group));
        memset(memory[turn], 0, LONGS * sizeof(long));
        OK(MPI_Win_fence(0, windows[turn]));
        use(windows[turn], memory[turn], ranks);
        OK(MPI_Win_free(&windows[turn]));
    }
    return check_end();
}
