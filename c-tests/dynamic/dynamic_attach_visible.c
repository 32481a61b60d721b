// Memory that is attached within an epoch can be accessed by any rank that gets its address in a
// message: nothing else tells the origin of it, and the epoch stays the same. MPI-4.1 section
// 12.2.4.
// ranks: 2 4

#include "dynamic.h"

enum { ROUNDS = 200, KEPT = 8 };

struct notice {
    MPI_Aint place, count;
};

static MPI_Win win;
static int *blocks[KEPT];

static int count_of(int round) { return 1 + 37 * round % 900; }

// A new block takes the place of the oldest one.
static struct notice attach_new(int round)
{
    const int index = round % KEPT, count = count_of(round);
    struct notice notice;
    if (blocks[index] != NULL) {
        OK(MPI_Win_detach(win, blocks[index]));
        free(blocks[index]);
    }
    blocks[index] = malloc((size_t)count * sizeof(int));
    CHECK(blocks[index] != NULL);
    for (int i = 0; i < count; i++)
        blocks[index][i] = 1000 * rank + round + i;
    OK(MPI_Win_attach(win, blocks[index], count * (MPI_Aint)sizeof(int)));
    notice.place = address_of(blocks[index]);
    notice.count = count;
    return notice;
}

// Reads the block of the sender of the notice and leaves other values in it.
static void reach(struct notice notice, int owner, int round)
{
    static int got[1000], values[1000];
    const int count = (int)notice.count;
    OK(MPI_Get(got, count, MPI_INT, owner, notice.place, count, MPI_INT, win));
    OK(MPI_Win_flush(owner, win));
    for (int i = 0; i < count; i++) {
        CHECK_EQ(got[i], 1000 * owner + round + i);
        values[i] = -got[i];
    }
    OK(MPI_Put(values, count, MPI_INT, owner, notice.place, count, MPI_INT, win));
    OK(MPI_Win_flush(owner, win));
}

static void one_round(int round)
{
    struct notice mine = attach_new(round), theirs;
    char done = 1;
    OK(MPI_Sendrecv(&mine, 2, MPI_AINT, next_rank(), 0, &theirs, 2, MPI_AINT, previous_rank(), 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    reach(theirs, previous_rank(), round);
    OK(MPI_Sendrecv_replace(&done, 1, MPI_CHAR, previous_rank(), 1, next_rank(), 1, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
    OK(MPI_Win_sync(win));
    for (int i = 0; i < count_of(round); i++)
        CHECK_EQ(blocks[round % KEPT][i], -(1000 * rank + round + i));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    win = dynamic_window();
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < ROUNDS; round++)
        one_round(round);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < KEPT; i++) {
        OK(MPI_Win_detach(win, blocks[i]));
        free(blocks[i]);
    }
    OK(MPI_Win_free(&win));
    return check_end();
}
