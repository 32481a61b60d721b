// The requests of Rput, Rget, Raccumulate and Rget_accumulate complete in every call that completes
// requests, mixed with those of sends and receives. MPI-4.1 sections 12.3.5 and 3.7.
// ranks: 1 2 4

#include "check.h"

enum { RMA = 4, ALL = 6, COUNT = 200 };

static MPI_Win win;
static long *base;
static MPI_Request request[ALL];
static long sent[COUNT], got[COUNT], added[COUNT], before[COUNT], message[COUNT], received[COUNT];

// Slot 0 of the window is put, slot 1 read, slot 2 added to, slot 3 read and added to.
static void start(long round)
{
    int target = next_rank();
    for (int i = 0; i < COUNT; i++) {
        sent[i] = message[i] = 1000 * round + rank + i;
        added[i] = 1;
        got[i] = before[i] = received[i] = -1;
    }
    OK(MPI_Irecv(received, COUNT, MPI_LONG, previous_rank(), 5, MPI_COMM_WORLD, &request[0]));
    OK(MPI_Rput(sent, COUNT, MPI_LONG, target, 0, COUNT, MPI_LONG, win, &request[1]));
    OK(MPI_Rget(got, COUNT, MPI_LONG, target, COUNT, COUNT, MPI_LONG, win, &request[2]));
    OK(MPI_Isend(message, COUNT, MPI_LONG, target, 5, MPI_COMM_WORLD, &request[3]));
    OK(MPI_Raccumulate(added, COUNT, MPI_LONG, target, 2 * COUNT, COUNT, MPI_LONG, MPI_SUM, win,
                       &request[4]));
    OK(MPI_Rget_accumulate(added, COUNT, MPI_LONG, before, COUNT, MPI_LONG, target, 3 * COUNT,
                           COUNT, MPI_LONG, MPI_SUM, win, &request[5]));
}

static void finish(long round)
{
    for (int i = 0; i < ALL; i++)
        CHECK(request[i] == MPI_REQUEST_NULL);
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(got[i], 77 + next_rank());
        CHECK_EQ(before[i], round);
        CHECK_EQ(received[i], 1000 * round + previous_rank() + i);
    }
    OK(MPI_Win_flush(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(base[i], 1000 * round + previous_rank() + i);
        CHECK_EQ(base[2 * COUNT + i], round + 1);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void by_waitsome_or_testsome(int test)
{
    int left = ALL, done, indices[ALL];
    MPI_Status statuses[ALL];
    while (left > 0) {
        if (test)
            OK(MPI_Testsome(ALL, request, &done, indices, statuses));
        else
            OK(MPI_Waitsome(ALL, request, &done, indices, statuses));
        CHECK(done != MPI_UNDEFINED && done <= left);
        left -= done;
    }
}

static void by_waitany_or_testany(int test)
{
    for (int left = ALL; left > 0;) {
        int index = MPI_UNDEFINED, flag = 1;
        if (test)
            OK(MPI_Testany(ALL, request, &index, &flag, MPI_STATUS_IGNORE));
        else
            OK(MPI_Waitany(ALL, request, &index, MPI_STATUS_IGNORE));
        if (!flag)
            continue;
        CHECK(index >= 0 && index < ALL);
        CHECK(request[index] == MPI_REQUEST_NULL);
        left--;
    }
}

static void by_test_or_status(int status)
{
    for (int i = 0; i < ALL; i++) {
        int flag = 0;
        while (!flag) {
            if (status)
                OK(MPI_Request_get_status(request[i], &flag, MPI_STATUS_IGNORE));
            else
                OK(MPI_Test(&request[i], &flag, MPI_STATUS_IGNORE));
        }
        // Request_get_status leaves the request; a wait takes it away.
        if (status)
            OK(MPI_Wait(&request[i], MPI_STATUS_IGNORE));
    }
}

static void complete(int way)
{
    MPI_Status statuses[ALL];
    int flag = 0;
    switch (way) {
    case 0:
        for (int i = ALL - 1; i >= 0; i--)
            OK(MPI_Wait(&request[i], &statuses[0]));
        break;
    case 1: OK(MPI_Waitall(ALL, request, statuses)); break;
    case 2:
        while (!flag)
            OK(MPI_Testall(ALL, request, &flag, statuses));
        break;
    case 3: case 4: by_waitsome_or_testsome(way == 4); break;
    case 5: case 6: by_waitany_or_testany(way == 6); break;
    case 7: case 8: by_test_or_status(way == 8); break;
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    base = window_of(4 * COUNT * sizeof(long), sizeof(long), &win);
    for (int i = 0; i < COUNT; i++)
        base[COUNT + i] = 77 + rank;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < 18; round++) {
        start(round);
        complete(round % 9);
        finish(round);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
