// Ranks that hold an exclusive lock of rank 0 in turn accumulate many elements by a handle, and so do the
// others, which hold no lock: handles ask no epoch, and no sum is lost. docs/decisions/0033. The plain MPI has
// none.
// ranks: 2 3 4

#include "handles.h"

enum { COUNT = 3000, TURNS = 150 };

static MPI_Win win;
static FOMPI_Mem mems[64];

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (has_handles()) {
        static int ones[COUNT];
        void *base = NULL;
        win = dynamic_window();
        share(win, &base, sizeof ones, mems);
        memset(base, 0, sizeof ones);
        for (int i = 0; i < COUNT; i++)
            ones[i] = 1;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int turn = 0; turn < TURNS; turn++) {
            int locks = rank == 0;
            if (locks)
                OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
            OK(FOMPI_Mem_accumulate(ones, COUNT, MPI_INT, mems[0], 0, MPI_SUM, FOMPI_REMOTE));
            if (locks)
                OK(MPI_Win_unlock(0, win));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0)
            for (int i = 0; i < COUNT; i++)
                CHECK_EQ(((int *)base)[i], TURNS * size);
        unshare(mems);
        OK(MPI_Free_mem(base));
        OK(MPI_Win_free(&win));
    }
    return check_end();
}
