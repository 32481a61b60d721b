// Traffic between two ranks without an end: puts, atomics and locks, small and large, until a call
// fails, which ends the job. Each rank says "going" once all kinds have worked. What was flushed
// before the failure is there: each rank counts in its own memory what it was told.
//
// usage: endless SECONDS: as long as that, nothing failed, and the exit code is 3

#include "robust.h"

#include <mpi.h>
#include <time.h>

enum { BYTES = 64 << 10 };

int main(int argc, char **argv)
{
    static char bytes[BYTES];
    char *base;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Win_allocate(BYTES + 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    const int target = (rank + 1) % size;
    const time_t until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 60);
    for (long turn = 0; time(NULL) < until; turn++) {
        const long one = 1;
        long before = -1;
        memset(bytes, (int)turn, BYTES);
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        OK(MPI_Put(bytes, turn % 2 ? BYTES : 100, MPI_BYTE, target, 8, turn % 2 ? BYTES : 100,
                   MPI_BYTE, win));
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, 0, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        CHECK(before == turn);
        bytes[0] = 0;
        OK(MPI_Get(bytes, 100, MPI_BYTE, target, 8, 100, MPI_BYTE, win));
        OK(MPI_Win_unlock(target, win));
        CHECK(bytes[0] == (char)turn && bytes[99] == (char)turn);
        if (turn == 3) {
            printf("going\n");
            fflush(stdout);
        }
    }
    MPI_Abort(MPI_COMM_WORLD, 3);
    return 3;
}
