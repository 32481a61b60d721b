// While a rank waits inside a synchronisation call for another, that one can finish a large message
// with it: calls that wait let the rest of MPI progress. MPI-4.1 sections 3.5 and 12.7.3.
// ranks: 2

#include "check.h"

enum { BYTES = 16 << 20 };

static char *message;
static MPI_Win win;
static MPI_Request request;

// Rank 0 has a large send or receive under way when it calls what waits for rank 1.
static void start_message(int sends)
{
    if (sends)
        OK(MPI_Isend(message, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
    else
        OK(MPI_Irecv(message, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
}

// Rank 1 blocks in its half of the message before it does what rank 0 waits for.
static void finish_message(int sends)
{
    if (sends)
        OK(MPI_Recv(message, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    else
        OK(MPI_Send(message, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
}

static void in_fence(int sends)
{
    OK(MPI_Win_fence(0, win));
    if (rank == 0)
        start_message(sends);
    else
        finish_message(sends);
    OK(MPI_Win_fence(0, win));
}

// Rank 1 holds the lock of `owner` that rank 0 wants.
static void in_lock(int sends, int owner, int all)
{
    if (rank == 1) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, owner, 0, win));
        OK(MPI_Win_flush(owner, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        start_message(sends);
        if (all)
            OK(MPI_Win_lock_all(0, win));
        else
            OK(MPI_Win_lock(MPI_LOCK_SHARED, owner, 0, win));
        if (all)
            OK(MPI_Win_unlock_all(win));
        else
            OK(MPI_Win_unlock(owner, win));
    } else {
        finish_message(sends);
        OK(MPI_Win_unlock(owner, win));
    }
}

// Rank 0 waits for the post of rank 1, or for its complete.
static void in_post_start(int sends, int waits_for_post, MPI_Group other)
{
    if (rank == 0) {
        start_message(sends);
        if (waits_for_post) {
            OK(MPI_Win_start(other, 0, win));
            OK(MPI_Win_complete(win));
        } else {
            OK(MPI_Win_post(other, 0, win));
            OK(MPI_Win_wait(win));
        }
    } else if (waits_for_post) {
        finish_message(sends);
        OK(MPI_Win_post(other, 0, win));
        OK(MPI_Win_wait(win));
    } else {
        OK(MPI_Win_start(other, 0, win));
        finish_message(sends);
        OK(MPI_Win_complete(win));
    }
}

int main(int argc, char **argv)
{
    MPI_Group world, other;
    check_start(&argc, &argv);
    message = calloc(BYTES, 1);
    window_of(64, 1, &win);
    int other_rank = 1 - rank;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &other_rank, &other));
    for (int sends = 0; sends < 2; sends++) {
        for (int shape = 0; shape < 6; shape++) {
            request = MPI_REQUEST_NULL;
            if (shape == 0)
                in_fence(sends);
            else if (shape < 4)
                in_lock(sends, shape % 2, shape == 3);
            else
                in_post_start(sends, shape == 5, other);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    }
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&world));
    OK(MPI_Win_free(&win));
    free(message);
    return check_end();
}
