// Calls with a count of zero, or with a datatype of no size, are legal and move nothing, even at
// the very end of a window, with null buffers, and at a target that exposes nothing.
// MPI-4.1 section 12.3.
// ranks: 1 2 4

#include "check.h"

static void moves_nothing(MPI_Win win, int target, MPI_Aint disp)
{
    MPI_Datatype empty;
    char byte = 1, got = 2;
    OK(MPI_Type_contiguous(0, MPI_INT, &empty));
    OK(MPI_Type_commit(&empty));
    OK(MPI_Put(NULL, 0, MPI_INT, target, disp, 0, MPI_INT, win));
    OK(MPI_Get(NULL, 0, MPI_INT, target, disp, 0, MPI_INT, win));
    OK(MPI_Accumulate(NULL, 0, MPI_INT, target, disp, 0, MPI_INT, MPI_SUM, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_INT, NULL, 0, MPI_INT, target, disp, 0, MPI_INT, MPI_SUM,
                          win));
    OK(MPI_Put(&byte, 3, empty, target, disp, 5, empty, win));
    OK(MPI_Get(&got, 3, empty, target, disp, 5, empty, win));
    OK(MPI_Type_free(&empty));
    CHECK_EQ(got, 2);
}

static void requests_complete(MPI_Win win, int target)
{
    MPI_Request request[2];
    OK(MPI_Rput(NULL, 0, MPI_INT, target, 0, 0, MPI_INT, win, &request[0]));
    OK(MPI_Rget(NULL, 0, MPI_INT, target, 0, 0, MPI_INT, win, &request[1]));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    unsigned char *base;
    int bytes;
    check_start(&argc, &argv);
    bytes = rank % 2 ? 0 : 64;
    OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    if (bytes > 0)
        memset(base, 9, (size_t)bytes);
    OK(MPI_Win_fence(0, win));
    for (int target = 0; target < size; target++)
        moves_nothing(win, target, target % 2 ? 0 : 64);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; target < size; target++) {
        moves_nothing(win, target, 0);
        requests_complete(win, target);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < bytes; i++)
        CHECK_EQ(base[i], 9);
    OK(MPI_Win_free(&win));
    return check_end();
}
