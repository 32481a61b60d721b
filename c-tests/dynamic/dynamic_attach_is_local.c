// Attaching and detaching are local: they need nothing of other ranks, which may sit in a receive,
// hold the lock of this rank or have an epoch open with it. MPI-4.1 section 12.2.4.
// ranks: 1 2 4

#include "dynamic.h"

enum { TIMES = 100, INTS = 64 };

static MPI_Win win;
static int blocks[TIMES][INTS];

static void attach_and_detach(void)
{
    for (int i = 0; i < TIMES; i++)
        OK(MPI_Win_attach(win, blocks[i], sizeof blocks[i] / 2));
    for (int i = TIMES - 1; i >= 0; i--)
        OK(MPI_Win_detach(win, blocks[i]));
}

// The others wait for a message that comes only after all is detached.
static void while_others_receive(void)
{
    char go = 1;
    if (rank > 0)
        OK(MPI_Recv(&go, 1, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    attach_and_detach();
    if (rank < size - 1)
        OK(MPI_Send(&go, 1, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Each rank is locked, with a flush to be sure, while it attaches.
static void while_locked(int type)
{
    OK(MPI_Win_lock(type, next_rank(), 0, win));
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    attach_and_detach();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void within_epochs(void)
{
    MPI_Group all;
    OK(MPI_Win_lock_all(0, win));
    attach_and_detach();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_fence(0, win));
    attach_and_detach();
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Win_post(all, 0, win));
    attach_and_detach();
    OK(MPI_Win_start(all, 0, win));
    attach_and_detach();
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Group_free(&all));
}

// Memory that is attached at the end of an epoch can be accessed in it.
static void reach_within_a_fence_epoch(int round)
{
    MPI_Aint places[RANKS_MAX];
    const int value = 100 * round + rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_attach(win, blocks[round], sizeof blocks[round]));
    exchange(blocks[round], places);
    OK(MPI_Put(&value, 1, MPI_INT, next_rank(), places[next_rank()], 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(blocks[round][0], 100 * round + previous_rank());
    OK(MPI_Win_detach(win, blocks[round]));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    win = dynamic_window();
    while_others_receive();
    while_locked(MPI_LOCK_EXCLUSIVE);
    while_locked(MPI_LOCK_SHARED);
    within_epochs();
    for (int round = 0; round < 5; round++)
        reach_within_a_fence_epoch(round);
    OK(MPI_Win_free(&win));
    return check_end();
}
