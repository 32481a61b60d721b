// Which locks exclude each other: rank 0 holds one of its own window, all others ask for one. Where
// one of the two is exclusive they see what rank 0 did under its lock; where both are shared,
// MPI_Win_lock_all among them, they come in while rank 0 holds its own.
// MPI-4.1 section 12.5.3.
// ranks: 2 4

#include "check.h"
#include <sched.h>

enum kind { EXCLUSIVE, SHARED, ALL, KINDS };

static MPI_Win win;

static void lock(enum kind kind)
{
    if (kind == ALL)
        OK(MPI_Win_lock_all(0, win));
    else
        OK(MPI_Win_lock(kind == EXCLUSIVE ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win));
}

static void unlock(enum kind kind)
{
    if (kind == ALL)
        OK(MPI_Win_unlock_all(win));
    else
        OK(MPI_Win_unlock(0, win));
}

// Time for the others, in which messages proceed.
static void let_others_run(void)
{
    for (int i = 0; i < 20000; i++) {
        int flag;
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        sched_yield();
    }
}

static void hold(enum kind held, int together, int mark)
{
    int token = 0;
    lock(held);
    for (int r = 1; r < size; r++)
        OK(MPI_Send(&token, 1, MPI_INT, r, 0, MPI_COMM_WORLD));
    for (int r = 1; r < size; r++)
        OK(MPI_Recv(&token, 1, MPI_INT, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (together) {
        for (int r = 1; r < size; r++)
            OK(MPI_Recv(&token, 1, MPI_INT, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
        let_others_run();
        OK(MPI_Put(&mark, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    }
    unlock(held);
}

static void ask(enum kind asked, int together, int mark)
{
    int token, got = -1;
    OK(MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    // From now on this rank asks.
    OK(MPI_Send(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD));
    lock(asked);
    OK(MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    unlock(asked);
    if (together)
        OK(MPI_Send(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    else
        CHECK_EQ(got, mark);
}

int main(int argc, char **argv)
{
    check_start_within(30, &argc, &argv);
    window_of(64, sizeof(int), &win);
    for (int held = 0; held < KINDS; held++)
        for (int asked = 0; asked < KINDS; asked++) {
            int together = held != EXCLUSIVE && asked != EXCLUSIVE;
            int mark = 10 * held + asked + 1;
            if (rank == 0)
                hold((enum kind)held, together, mark);
            else
                ask((enum kind)asked, together, mark);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    OK(MPI_Win_free(&win));
    return check_end();
}
