// Rank 1 is stopped (SIGSTOP) for a while, and rank 0 puts more to it than sockets hold, which is no
// loss: all of it arrives when rank 1 goes on.
//
// usage: stopped SECONDS

#include "robust.h"

#include <signal.h>

enum { BYTES = 32 << 20 };

// Stops this process for so many seconds, by a child that lets it go on.
static void stop_for(unsigned seconds)
{
    const pid_t parent = getpid(), child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        sleep(seconds);
        kill(parent, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
}

int main(int argc, char **argv)
{
    static char bytes[BYTES];
    char *base;
    MPI_Win win;
    start(60, &argc, &argv);
    OK(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_lock_all(0, win));
    memset(bytes, 7, BYTES);
    OK(MPI_Put(bytes, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1) {
        stop_for((unsigned)atoi(argv[1]));
    } else {
        usleep(300000); // it is stopped by then
        for (int round = 0; round < 2; round++) {
            OK(MPI_Put(bytes, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, win));
            OK(MPI_Win_flush(1, win));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(rank != 1 || memcmp(base, bytes, BYTES) == 0);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    MPI_Finalize();
    return 0;
}
