// Wrong arguments of synchronisation calls: lock types, ranks, assertions, groups.
// MPI-4.1 sections 12.5 and 12.6.2.
// ranks: 1 2 4
// settings: FOMPI_STRICT=1

#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win;
    check_start(&argc, &argv);
    returning_window_of(64, sizeof(long), &win);
    EXPECT(MPI_Win_lock(12345, next_rank(), 0, win), MPI_ERR_LOCKTYPE);
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK);
    EXPECT(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, -77, 0, win), MPI_ERR_RANK);
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), ~0, win), MPI_ERR_ASSERT);
    EXPECT(MPI_Win_lock_all(~0, win), MPI_ERR_ASSERT);
    EXPECT(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    EXPECT(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    OK(MPI_Win_lock_all(0, win));
    EXPECT(MPI_Win_flush(size, win), MPI_ERR_RANK);
    EXPECT(MPI_Win_flush_local(-77, win), MPI_ERR_RANK);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // Nobody holds or believes to hold anything.
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    return check_end();
}
