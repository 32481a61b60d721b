// Requests that are complete when they are made may have one handle in common. Each of them is still a
// request of its own: it completes once, in any call, however many there are and in whatever order, and
// together with persistent requests. MPI-4.1 sections 3.7 and 12.3.5.
// ranks: 1 2 4

#include "created.h"

enum { MANY = 100, PAIRS = 2 };

static MPI_Win win;
static long *base, sent[MANY], got[MANY];
static MPI_Request request[MANY];

static void start(void)
{
    for (int i = 0; i < MANY; i++) {
        sent[i] = 1000 * rank + i, got[i] = -1;
        if (i % 2 == 0)
            OK(MPI_Rput(&sent[i], 1, MPI_LONG, next_rank(), i, 1, MPI_LONG, win, &request[i]));
        else
            OK(MPI_Rget(&got[i], 1, MPI_LONG, next_rank(), i, 1, MPI_LONG, win, &request[i]));
        CHECK(request[i] != MPI_REQUEST_NULL);
    }
}

static void finish(void)
{
    for (int i = 0; i < MANY; i++) {
        CHECK(request[i] == MPI_REQUEST_NULL);
        CHECK(i % 2 == 0 || got[i] == 7);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int i = 0; i < MANY; i += 2)
        CHECK_EQ(base[i], 1000 * previous_rank() + i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// Asks for one and the same request again and again, and completes it last.
static void asked_often(void)
{
    int flag;
    start();
    for (int i = 0; i < 3 * MANY;) {
        OK(MPI_Request_get_status(request[5], &flag, MPI_STATUS_IGNORE));
        i += flag;
    }
    for (int i = MANY - 1; i >= 0; i--)
        OK(MPI_Wait(&request[i != 5 ? i : 0], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request[5], MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(next_rank(), win));
    finish();
}

// One by one, and some at once: each index comes once.
static void each_once(int some)
{
    int seen[MANY] = {0}, indices[MANY], done = 1;
    start();
    for (int left = MANY; left > 0; left -= done) {
        if (some)
            OK(MPI_Waitsome(MANY, request, &done, indices, MPI_STATUSES_IGNORE));
        else
            OK(MPI_Waitany(MANY, request, &indices[0], MPI_STATUS_IGNORE));
        CHECK(done > 0 && done <= left);
        for (int i = 0; i < done; i++) {
            CHECK(indices[i] >= 0 && indices[i] < MANY && !seen[indices[i]]);
            seen[indices[i]] = 1;
            CHECK(request[indices[i]] == MPI_REQUEST_NULL);
        }
    }
    OK(MPI_Win_flush(next_rank(), win));
    finish();
}

// Some are freed; the others complete as before.
static void some_are_freed(void)
{
    start();
    for (int i = 0; i < MANY && library_is_here(); i += 3) {
        if (i % 2 == 0)
            OK(MPI_Request_free(&request[i])); // a get would need a wait
    }
    OK(MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE));
    OK(MPI_Win_flush(next_rank(), win));
    finish();
}

// Persistent sends and receives are started again meanwhile, and stay when they are complete.
static void beside_persistent(void)
{
    static long out[PAIRS], in[PAIRS];
    MPI_Request all[2 * PAIRS + 2];
    for (int i = 0; i < PAIRS; i++) {
        OK(MPI_Send_init(&out[i], 1, MPI_LONG, next_rank(), i, MPI_COMM_WORLD, &all[2 * i]));
        OK(MPI_Recv_init(&in[i], 1, MPI_LONG, previous_rank(), i, MPI_COMM_WORLD, &all[2 * i + 1]));
    }
    for (int round = 0; round < 10; round++) {
        long value = round, back = -1;
        for (int i = 0; i < PAIRS; i++)
            out[i] = 10 * round + i, in[i] = -1;
        OK(MPI_Startall(2 * PAIRS, all));
        OK(MPI_Rput(&value, 1, MPI_LONG, next_rank(), 0, 1, MPI_LONG, win, &all[2 * PAIRS]));
        OK(MPI_Rget(&back, 1, MPI_LONG, next_rank(), 1, 1, MPI_LONG, win, &all[2 * PAIRS + 1]));
        OK(MPI_Waitall(2 * PAIRS + 2, all, MPI_STATUSES_IGNORE));
        CHECK_EQ(back, 7);
        for (int i = 0; i < PAIRS; i++)
            CHECK_EQ(in[i], 10 * round + i);
        for (int i = 0; i < 2 * PAIRS + 2; i++)
            CHECK((all[i] == MPI_REQUEST_NULL) == (i >= 2 * PAIRS));
    }
    for (int i = 0; i < 2 * PAIRS; i++)
        OK(MPI_Request_free(&all[i]));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(MANY * sizeof(long), sizeof(long), &win);
    for (int i = 0; i < MANY; i++)
        base[i] = 7;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < 3; round++) {
        asked_often();
        each_once(0);
        each_once(1);
        some_are_freed();
    }
    beside_persistent();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
