// One rank of two waits for the other in the call that the first argument names (`free`: in
// MPI_Win_free), until the file of the second argument is there. With `deadlock` three ranks hold a lock each and want that of the
// next one; with `holder` rank 1 holds what rank 0 wants, and waits in another window itself.

#include <mpi.h>
#include "../../include/fompi_notify.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#pragma weak FOMPI_Put_notify
#pragma weak FOMPI_Win_set_num_notify
#pragma weak FOMPI_Win_wait_notify
#pragma weak FOMPI_Win_wait_any_notify

static const char *file;
static MPI_Win win, other_win;
static MPI_Group other;
static int rank, size;

static void until_told(void)
{
    while (access(file, F_OK) != 0)
        usleep(20000);
}

static void fence(void)
{
    if (rank == 1)
        until_told();
    MPI_Win_fence(0, win);
}

static void start(void)
{
    if (rank == 1) {
        until_told();
        MPI_Win_post(other, 0, win);
        MPI_Win_wait(win);
    } else {
        MPI_Win_start(other, 0, win);
        MPI_Win_complete(win);
    }
}

static void wait_call(void)
{
    if (rank == 1) {
        until_told();
        MPI_Win_start(other, 0, win);
        MPI_Win_complete(win);
    } else {
        MPI_Win_post(other, 0, win);
        MPI_Win_wait(win);
    }
}

// Rank 0 wants a lock of kind `kind` that rank 1 keeps from it; 0: all.
static void lock(int kind, int held)
{
    if (rank == 1 && held == 0)
        MPI_Win_lock_all(0, win);
    if (rank == 1 && held != 0)
        MPI_Win_lock(held, 1, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        until_told();
        if (held == 0)
            MPI_Win_unlock_all(win);
        else
            MPI_Win_unlock(1, win);
    } else if (kind == 0) {
        MPI_Win_lock_all(0, win);
        MPI_Win_unlock_all(win);
    } else {
        MPI_Win_lock(kind, 1, 0, win);
        MPI_Win_unlock(1, win);
    }
}

// Rank 0 waits for three notifications, and rank 1 delays two of them.
static void notified(int any)
{
    const int counter = 1;
    int found = counter;
    long value = 1;
    FOMPI_Win_set_num_notify(win, MPI_INFO_NULL, 3);
    MPI_Win_lock_all(0, win);
    for (int i = 0; rank == 1 && i < 3; i++) {
        FOMPI_Put_notify(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, counter, win);
        MPI_Win_flush(0, win);
        if (i == 0)
            until_told();
    }
    if (rank == 0 && any)
        FOMPI_Win_wait_any_notify(win, 0, 3, 3, &found);
    else if (rank == 0)
        FOMPI_Win_wait_notify(win, counter, 3);
    MPI_Win_unlock_all(win);
    if (found != counter)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

// Rank 2 holds back rank 1, which holds back rank 0.
static void holder(void)
{
    if (rank == 2)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, other_win);
    if (rank == 1)
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2) {
        until_told();
        MPI_Win_unlock(2, other_win);
    } else if (rank == 1) {
        MPI_Win_lock_all(0, other_win);
        MPI_Win_unlock_all(other_win);
        MPI_Win_unlock(0, win);
    } else {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Win_unlock(0, win);
    }
}

// Ends a process that waits forever.
static void *end_when_told(void *nothing)
{
    until_told();
    _exit(3);
    return nothing;
}

static void deadlock(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, end_when_told, NULL);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % size, 0, win);
}

int main(int argc, char **argv)
{
    long *memory;
    MPI_Group world;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int partner = rank == 0;
    MPI_Group_incl(world, 1, &partner, &other);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &other_win);
    MPI_Win_set_name(win, "a table\n");
    const char *what = argc > 2 ? argv[1] : "";
    file = argv[2];
    if (strcmp(what, "fence") == 0)
        fence();
    else if (strcmp(what, "free") == 0 && rank == 1)
        until_told();
    else if (strcmp(what, "start") == 0)
        start();
    else if (strcmp(what, "wait") == 0)
        wait_call();
    else if (strcmp(what, "notified") == 0 || strcmp(what, "notified_any") == 0)
        notified(strcmp(what, "notified_any") == 0);
    else if (strcmp(what, "shared") == 0)
        lock(MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE);
    else if (strcmp(what, "exclusive") == 0)
        lock(MPI_LOCK_EXCLUSIVE, 0);
    else if (strcmp(what, "lock_all") == 0)
        lock(0, MPI_LOCK_EXCLUSIVE);
    else if (strcmp(what, "standing") == 0) {
        // So many that the next one has no intent of its own.
        for (int i = 0; rank == 1 && i < 100; i++) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
            MPI_Win_unlock(1, win);
        }
        lock(0, MPI_LOCK_EXCLUSIVE);
    } else if (strcmp(what, "holder") == 0)
        holder();
    else if (strcmp(what, "deadlock") == 0)
        deadlock();
    else if (strcmp(what, "free") != 0)
        return 2;
    MPI_Group_free(&world);
    MPI_Group_free(&other);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
