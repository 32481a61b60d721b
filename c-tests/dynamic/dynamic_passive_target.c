// True passive target on attached memory: every kind of operation completes although its target
// computes and calls nothing of MPI until the origin is done. MPI-4.1 sections 12.2.4 and 12.7.3.
// ranks: 2 4

#include "dynamic.h"

enum { COUNT = 4096 };

static volatile int64_t released;
static int64_t values[COUNT], got[COUNT];

static void operations(MPI_Win win, int target, MPI_Aint there)
{
    const int64_t one = 1, zero = 0;
    int64_t before;
    MPI_Datatype every_second;
    MPI_Request request;
    OK(MPI_Type_vector(COUNT / 4, 1, 2, MPI_INT64_T, &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_Put(values, COUNT, MPI_INT64_T, target, there, COUNT, MPI_INT64_T, win));
    OK(MPI_Put(values, 1, every_second, target, there, 1, every_second, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Get(got, COUNT, MPI_INT64_T, target, there, COUNT, MPI_INT64_T, win));
    OK(MPI_Get(got, 1, every_second, target, there, 1, every_second, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Accumulate(values, COUNT, MPI_INT64_T, target, there, COUNT, MPI_INT64_T, MPI_SUM,
                      win));
    OK(MPI_Get_accumulate(values, COUNT, MPI_INT64_T, got, COUNT, MPI_INT64_T, target, there,
                          COUNT, MPI_INT64_T, MPI_MAX, win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, there, MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    OK(MPI_Compare_and_swap(&zero, &one, &before, MPI_INT64_T, target, there, win));
    OK(MPI_Win_flush_local(target, win));
    OK(MPI_Rput(values, 1, MPI_INT64_T, target, there, 1, MPI_INT64_T, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Rget(got, COUNT, MPI_INT64_T, target, there, COUNT, MPI_INT64_T, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Type_free(&every_second));
}

// Locks of all kinds, one after the other.
static void locks(MPI_Win win, int target, MPI_Aint there)
{
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    operations(win, target, there);
    OK(MPI_Win_unlock(target, win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    operations(win, target, there);
    OK(MPI_Win_unlock(target, win));
    OK(MPI_Win_lock_all(0, win));
    operations(win, target, there);
    OK(MPI_Win_unlock_all(win));
}

static void release(MPI_Win win, int target, MPI_Aint there)
{
    const int64_t one = 1;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Put(&one, 1, MPI_INT64_T, target, there, 1, MPI_INT64_T, win));
    OK(MPI_Win_unlock(target, win));
}

int main(int argc, char **argv)
{
    MPI_Aint of_heap[RANKS_MAX], of_mpi[RANKS_MAX], flags[RANKS_MAX];
    void *memory;
    check_start_within(15, &argc, &argv);
    MPI_Win win = dynamic_window();
    void *heap = calloc(COUNT, sizeof(int64_t));
    OK(MPI_Alloc_mem(COUNT * sizeof(int64_t), MPI_INFO_NULL, &memory));
    memset(memory, 0, COUNT * sizeof(int64_t));
    OK(MPI_Win_attach(win, heap, COUNT * sizeof(int64_t)));
    OK(MPI_Win_attach(win, memory, COUNT * sizeof(int64_t)));
    OK(MPI_Win_attach(win, (void *)&released, sizeof released));
    exchange(heap, of_heap);
    exchange(memory, of_mpi);
    exchange(&released, flags);
    // Rank 0 works on the last rank and then releases all the others; they watch their own memory.
    if (rank == 0) {
        locks(win, size - 1, of_heap[size - 1]);
        locks(win, size - 1, of_mpi[size - 1]);
        for (int target = 1; target < size; target++)
            release(win, target, flags[target]);
    } else {
        check_here(__FILE__, __LINE__);
        while (released == 0)
            ;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, heap));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_detach(win, (void *)&released));
    OK(MPI_Win_free(&win));
    free(heap);
    OK(MPI_Free_mem(memory));
    return check_end();
}
