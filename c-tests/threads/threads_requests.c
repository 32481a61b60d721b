// Many threads of each process have transfers with requests under way at once, and each waits for
// its own, in ways of its own. MPI-4.1 sections 11.6 and 12.3.5.
// ranks: 2 4
// plain ranks: 2

#include "threads.h"

enum { THREADS = 8, COUNT = 4096, EACH = 4, ROUNDS = 25 };

static MPI_Win win;

static long value_of(int owner, int index) { return 1000003L * owner + index; }

static void complete(int way, MPI_Request *request)
{
    int flag = 0, which;
    switch (way % 5) {
    case 0: OK(MPI_Waitall(EACH, request, MPI_STATUSES_IGNORE)); break;
    case 1:
        while (!flag)
            OK(MPI_Testall(EACH, request, &flag, MPI_STATUSES_IGNORE));
        break;
    case 2:
        for (int i = 0; i < EACH; i++)
            OK(MPI_Waitany(EACH, request, &which, MPI_STATUS_IGNORE));
        break;
    case 3:
        for (int i = EACH - 1; i >= 0; i--)
            OK(MPI_Wait(&request[i], MPI_STATUS_IGNORE));
        break;
    case 4:
        for (int i = 0; i < EACH; i++) {
            for (flag = 0; !flag;)
                OK(MPI_Request_get_status(request[i], &flag, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&request[i], MPI_STATUS_IGNORE));
        }
        break;
    }
}

static void *work(void *argument)
{
    const int number = *(int *)argument;
    static long got[THREADS][EACH][COUNT];
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request[EACH];
        memset(got[number], 0xff, sizeof got[number]);
        for (int i = 0; i < EACH; i++)
            OK(MPI_Rget(got[number][i], COUNT, MPI_LONG, (rank + number + i) % size, 0, COUNT,
                        MPI_LONG, win, &request[i]));
        complete(number + round, request);
        for (int i = 0; i < EACH; i++) {
            CHECK(request[i] == MPI_REQUEST_NULL);
            for (int k = 0; k < COUNT; k++)
                CHECK_EQ(got[number][i][k], value_of((rank + number + i) % size, k));
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (!check_start_threads(&argc, &argv))
        return check_end();
    long *base = window_of(COUNT * sizeof(long), sizeof(long), &win);
    for (int i = 0; i < COUNT; i++)
        base[i] = value_of(rank, i);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    run_numbered_threads(THREADS, work);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    return check_end();
}
