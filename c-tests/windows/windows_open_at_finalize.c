// Windows of all flavours are still open when MPI ends, some used, some named, with attributes whose
// values are the program's, one over a communicator that is freed. What was in flight in their closed
// epochs has arrived before. MPI-4.1 sections 11.2.2 and 12.2.5.
// ranks: 1 2 4
// between nodes: shared windows are left to the host MPI

#include "check.h"

enum { LONGS = 8 };

static long created[LONGS], attached[LONGS];

static void put(MPI_Win win, MPI_Aint disp, const long *base, long mark)
{
    const long value = mark + rank;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next_rank(), disp, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK_EQ(base[0], mark + previous_rank());
    OK(MPI_Win_unlock(rank, win));
}

int main(int argc, char **argv)
{
    const MPI_Aint bytes = LONGS * sizeof(long);
    MPI_Win allocated, shared, over_own, dynamic, unused;
    MPI_Aint here, there;
    MPI_Comm copy;
    int keyval, value = 3;
    long *base, *shared_base, *unused_base;
    check_start(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &allocated));
    OK(MPI_Win_allocate_shared(bytes, sizeof(long), MPI_INFO_NULL, copy, &shared_base, &shared));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Win_create(created, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &over_own));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    OK(MPI_Win_attach(dynamic, attached, bytes));
    OK(MPI_Get_address(attached, &here));
    OK(MPI_Sendrecv(&here, 1, MPI_AINT, previous_rank(), 0, &there, 1, MPI_AINT, next_rank(), 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Win_allocate(0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &unused_base, &unused));
    OK(MPI_Win_set_name(over_own, "still there"));
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL));
    OK(MPI_Win_set_attr(dynamic, keyval, &value));
    put(allocated, 0, base, 100);
    put(shared, 0, shared_base, 200);
    put(over_own, 0, created, 300);
    put(dynamic, there, attached, 400);
    return check_end();
}
