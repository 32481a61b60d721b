// True passive target: every kind of operation completes although its target computes and calls
// nothing of MPI until the origin is done. MPI-4.1 section 12.7.3.
// ranks: 2 4

#include "check.h"

enum { COUNT = 4096, FLAG = 0, DATA = 16 };

static void operations(MPI_Win win, int target)
{
    static long values[COUNT], got[COUNT];
    const long one = 1, zero = 0;
    long before;
    MPI_Datatype every_second;
    MPI_Request request;
    OK(MPI_Type_vector(COUNT / 4, 1, 2, MPI_LONG, &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_Put(values, 1, MPI_LONG, target, DATA, 1, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Put(values, COUNT, MPI_LONG, target, DATA, COUNT, MPI_LONG, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Put(values, 1, every_second, target, DATA, 1, every_second, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(got, COUNT, MPI_LONG, target, DATA, COUNT, MPI_LONG, win));
    OK(MPI_Get(got, 1, every_second, target, DATA, 1, every_second, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Accumulate(values, COUNT, MPI_LONG, target, DATA, COUNT, MPI_LONG, MPI_SUM, win));
    OK(MPI_Get_accumulate(values, COUNT, MPI_LONG, got, COUNT, MPI_LONG, target, DATA, COUNT,
                          MPI_LONG, MPI_MAX, win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, DATA, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Compare_and_swap(&zero, &one, &before, MPI_LONG, target, DATA, win));
    OK(MPI_Win_flush_local(target, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Rput(values, 1, MPI_LONG, target, DATA, 1, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Rget(got, COUNT, MPI_LONG, target, DATA, COUNT, MPI_LONG, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Type_free(&every_second));
}

// Locks of all kinds, one after the other.
static void locks(MPI_Win win, int target)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    operations(win, target);
    OK(MPI_Win_unlock(target, win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    operations(win, target);
    OK(MPI_Win_unlock(target, win));
    OK(MPI_Win_lock_all(0, win));
    operations(win, target);
    OK(MPI_Win_unlock_all(win));
}

static void release(MPI_Win win, int target)
{
    const long one = 1;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Put(&one, 1, MPI_LONG, target, FLAG, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start_within(15, &argc, &argv);
    volatile long *base = window_of((DATA + COUNT) * sizeof(long), sizeof(long), &win);
    // Rank 0 works on the last rank and then releases all the others; they watch their own memory.
    if (rank == 0) {
        locks(win, size - 1);
        for (int target = 1; target < size; target++)
            release(win, target);
    } else {
        check_here(__FILE__, __LINE__);
        while (base[FLAG] == 0)
            ;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    return check_end();
}
