// One thread frees windows of a communicator while another makes windows of it: what a window that
// is being freed used is not given to a new one before all ranks have left it. MPI-4.1 sections
// 11.6 and 12.2.5.
// ranks: 2 4

#include "threads.h"

enum { ROUNDS = 400 };

static MPI_Win old_win;

static void *free_old(void *unused)
{
    OK(MPI_Win_free(&old_win));
    return unused;
}

int main(int argc, char **argv)
{
    MPI_Win new_win;
    if (!check_start_threads(&argc, &argv))
        return check_end();
    window_of(64, 8, &old_win);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        void *base;
        CHECK_EQ(pthread_create(&thread, NULL, free_old, NULL), 0);
        OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &new_win));
        CHECK_EQ(pthread_join(thread, NULL), 0);
        OK(MPI_Win_fence(0, new_win));
        OK(MPI_Win_fence(0, new_win));
        old_win = new_win;
    }
    OK(MPI_Win_free(&old_win));
    return check_end();
}
